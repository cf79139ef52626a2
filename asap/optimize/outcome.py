"""What came of evaluating a configuration: its code, its figures, and feedback in words."""

from enum import StrEnum
from typing import Literal

from pydantic import BaseModel, Field

from asap.core.feedback import Feedback
from asap.core.units import Provenance
from asap.prediction.prediction import Prediction

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

    @classmethod
    def of(cls, found: Prediction) -> "Expectation":
        """What a prediction says."""
        step, held = found.step_time, found.memory and found.memory.total.value
        if step is None:
            return cls(hbm_bytes=held)
        return cls(step_time_s=step.value, low_s=step.low, high_s=step.high, hbm_bytes=held)


class Suggestion(BaseModel, frozen=True):
    """What to try next."""

    configuration: Configuration
    why: str
    predicted: Expectation = Expectation()
    saving: float | None = Field(
        default=None, description="expected share of the best step time so far, a loss counted as none; null: unknown"
    )
    instead_of: Configuration | None = Field(
        default=None, description="what the engine would have tried, where a language model chose something else"
    )
    overrules: bool = Field(default=False, description="whether the engine expects nothing of that choice")


class Cost(BaseModel, frozen=True):
    """What an evaluation took, or is expected to take."""

    seconds: float
    chip_hours: float = Field(default=0.0, description="0 where no accelerator is used")
    money: float | None = None
    currency: str | None = None


class Try(Suggestion, frozen=True):
    """One evaluation. ``outcome`` is ``None`` as long as it runs."""

    number: int = Field(description="from 1")
    outcome: Outcome | None = None
    cost: Cost | None = None


class Code(StrEnum):
    """Kinds of feedback on an evaluation."""

    OUT_OF_MEMORY = "OUT_OF_MEMORY"
    INVALID = "INVALID"
    IGNORED_OVERRIDE = "IGNORED_OVERRIDE"
    HANG = "HANG"
    PREEMPTED = "PREEMPTED"
    INTERRUPTED = "INTERRUPTED"
    BUDGET_SPENT = "BUDGET_SPENT"
    CRASHED = "CRASHED"
    NO_STEP_TIME = "NO_STEP_TIME"
    UNCHECKED = "UNCHECKED"
    WRONG_RESULT = "WRONG_RESULT"
    THROTTLED = "THROTTLED"
    NOISE = "NOISE"
    MEMORY_TO_SPARE = "MEMORY_TO_SPARE"
    EXPOSED_COLLECTIVE = "EXPOSED_COLLECTIVE"
    SYNCHRONOUS_COLLECTIVE = "SYNCHRONOUS_COLLECTIVE"
    LAUNCH_BOUND = "LAUNCH_BOUND"
    REDUCED_EFFORT = "REDUCED_EFFORT"
    LAYOUT_COPY = "LAYOUT_COPY"
    RESHARDING = "RESHARDING"


_WORDS: dict[Code, tuple[str, str]] = {
    Code.OUT_OF_MEMORY: ("it ran out of device memory", "shard parameters further, recompute more, or take less batch"),
    Code.INVALID: ("the launcher refused it", "read its message, and leave out what it does not allow"),
    Code.IGNORED_OVERRIDE: ("the log shows another plan than the one asked for", "pass {overrides} on to the trainer"),
    Code.HANG: ("it reached its time limit", "look for a collective that waits, or raise --time-limit"),
    Code.PREEMPTED: ("it was preempted", "it is tried again"),
    Code.INTERRUPTED: ("it was interrupted", "`asap optimize resume SESSION` tries it again"),
    Code.BUDGET_SPENT: (
        "the budget was spent before it ended",
        "`asap optimize resume SESSION` goes on with a larger --budget",
    ),
    Code.CRASHED: ("it crashed", "read the log of the try"),
    Code.NO_STEP_TIME: (
        "its log has no step time that can be read",
        "let it log steps as MaxText, Megatron-LM or torchtitan do, or name where it logs with --wait-for",
    ),
    Code.UNCHECKED: (
        "its log does not show its settings, so whether the overrides were taken is not known",
        "let the trainer print its configuration",
    ),
    Code.WRONG_RESULT: ("its loss is not a number", "run it with the numerics as they were"),
    Code.THROTTLED: ("its steps grew longer and longer", "look at temperature and at other jobs on the machine"),
    Code.NOISE: ("its steps vary too much to tell", "measure it again, or for more steps"),
    Code.MEMORY_TO_SPARE: ("HBM is left over", "recompute less, or shard parameters less"),
    Code.EXPOSED_COLLECTIVE: ("the step waits for a collective", "lower the degree of its axis"),
    Code.SYNCHRONOUS_COLLECTIVE: ("a collective runs alone", "move its axis to neighbouring chips"),
    Code.LAUNCH_BOUND: (
        "the devices wait for the host",
        "give each step more work (a larger batch, fewer microbatches), and look at the input pipeline",
    ),
    Code.REDUCED_EFFORT: (
        "it was compiled with reduced effort, as full effort did not end: the step may be shorter",
        "give the compiler longer with --time-limit",
    ),
    Code.LAYOUT_COPY: ("the step copies data within the device", "keep tensors whole along their last dimension"),
    Code.RESHARDING: ("data moves between layouts", "give neighbouring operations the same axes"),
}


def feedback(
    code: Code, explanation: str | None = None, suggestion: str | None = None, axis: str | None = None
) -> Feedback:
    """Feedback on a whole configuration, or one axis of it, in the usual words where none are given."""
    usual = _WORDS[code]
    return Feedback(code=code, explanation=explanation or usual[0], suggestion=suggestion or usual[1], axis=axis)
