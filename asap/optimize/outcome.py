"""What came of evaluating a configuration, and a try: the configuration, why it was tried, and its outcome."""

from typing import Literal

from pydantic import BaseModel, Field

from asap.core.feedback import Feedback
from asap.core.provenance import Provenance

Configuration = str
"""The text form of what is tuned: the line of a plan, or a mapping program."""

Status = Literal["done", "rejected", "failed", "lost"]
"""``done``: evaluated. ``rejected``: the configuration cannot run. ``failed``: it died, and may not be the reason.
``lost``: through no fault of its own, as by preemption; it may be tried again."""


class Outcome(BaseModel, frozen=True):
    """What an evaluator says of a configuration. What is unknown is ``None``, and ``feedback`` says why."""

    status: Status
    step_time_s: float | None = Field(default=None, gt=0, description="mean of the steps behind the warm-up")
    standard_error_s: float | None = Field(default=None, ge=0, description="of the mean; null where nothing varies")
    steps: int | None = Field(default=None, description="steps behind the warm-up")
    hbm_bytes: float | None = Field(default=None, description="of the fullest device")
    provenance: Provenance
    feedback: tuple[Feedback, ...] = ()
    seconds: float = Field(default=0.0, ge=0, description="wall time of the evaluation")

    @property
    def codes(self) -> frozenset[str]:
        """The kinds of its feedback."""
        return frozenset(each.code for each in self.feedback)


class Expectation(BaseModel, frozen=True):
    """What a proposer expects of a configuration, with its 90 % interval."""

    step_time_s: float | None = None
    low_s: float | None = None
    high_s: float | None = None
    hbm_bytes: float | None = None


class Suggestion(BaseModel, frozen=True):
    """What to try next."""

    configuration: Configuration
    why: str
    predicted: Expectation = Expectation()
    saving: float | None = Field(
        default=None, description="expected share of the best step time so far, a loss counted as none; null: unknown"
    )


class Cost(BaseModel, frozen=True):
    """What an evaluation took, or is expected to take."""

    seconds: float
    chip_hours: float = Field(default=0.0, description="0 where no accelerator is used")
    money: float | None = None
    currency: str | None = None


class Try(BaseModel, frozen=True):
    """One evaluation. ``outcome`` is ``None`` as long as it runs."""

    number: int = Field(description="from 1")
    configuration: Configuration
    why: str
    predicted: Expectation = Expectation()
    outcome: Outcome | None = None
    cost: Cost | None = None
