"""A proposal: a plan, what is expected of it, why, and what to paste."""

from typing import Literal

from pydantic import BaseModel, ConfigDict, Field, computed_field

from asap.core.units import Quantity
from asap.plans import Plan
from asap.prediction.prediction import Prediction
from asap.proposals.test_worth import TestWorth
from asap.stacks.launchers import FALLBACK, Stack


class Citation(BaseModel):
    """A principle or a precedent, and the sentence that it stands behind."""

    model_config = ConfigDict(frozen=True)

    kind: Literal["principle", "precedent"]
    id: str = Field(description="opens with `asap knowledge show` or `asap history show`")
    title: str
    url: str | None = None
    supports: str
    against: bool = Field(default=False, description="a precedent in which the change failed or was slower")

    @property
    def source(self) -> str:
        """The title, with a word on it where it speaks against the proposal."""
        return f"Against it: {self.title}" if self.against else self.title


class Impact(BaseModel):
    """What is expected of one KPI, in words and, where it can be predicted, in numbers."""

    model_config = ConfigDict(frozen=True)

    name: Literal["step time", "duty cycle", "communication", "HBM"]
    statement: str
    quantity: Quantity | None = None


class Confidence(BaseModel):
    """How likely the plan is faster than the incumbent, and on what that rests."""

    model_config = ConfigDict(frozen=True)

    faster: Quantity | None = Field(default=None, description="probability, from the interval of the prediction")
    basis: tuple[str, ...]


class Overrides(BaseModel):
    """What to paste into the launcher or the configuration of the stack that runs it."""

    model_config = ConfigDict(frozen=True)

    stack: Stack = Field(default=FALLBACK, description="whose words they are")
    text: str = Field(default="", description="arguments on one line, or TOML, YAML, JSON or Python on several")
    exports: tuple[str, ...] = Field(default=(), description="lines for a shell: flags that this plan needs besides")

    @computed_field(description="what to paste: the flags for a shell, then the launcher's words")
    @property
    def lines(self) -> tuple[str, ...]:
        """What to paste: the flags for a shell, then the launcher's words; which is which, where these are a file's."""
        words = tuple(self.text.splitlines())
        if self.exports and len(words) > 1:
            return ("# in the shell", *self.exports, "# in the configuration", *words)
        return (*self.exports, *words)


class ChangedSetting(BaseModel):
    """An axis of the mesh or a lever that a plan sets differently from what runs."""

    model_config = ConfigDict(frozen=True)

    name: str = Field(
        description="replica, data, … of the mesh (dcn.data over slices), or a lever: remat, loss_chunks, …"
    )
    before: str
    after: str

    def __str__(self) -> str:
        return f"{self.name} {self.before}→{self.after}"


class Proposal(BaseModel):
    """One of the three."""

    model_config = ConfigDict(frozen=True)

    rank: int
    title: str
    plan: Plan
    prediction: Prediction
    reasoning: tuple[str, ...]
    impact: tuple[Impact, ...]
    trade_offs: tuple[str, ...]
    citations: tuple[Citation, ...]
    confidence: Confidence
    overrides: Overrides
    score: float = Field(description="what decides the order: expected gain in ln(step time) after doubt")
    strategy: str = Field(default="", description="what most of its gain comes from; with 'alone', all that it changes")
    settings: tuple[ChangedSetting, ...] = Field(default=(), description="what differs from the plan that runs")
    precedent: float = Field(default=0.0, description="gain in ln(step time) that precedents add to the score")
    makes_fit: bool = Field(default=False, description="it fits into HBM where the plan that runs does not")
    test_worth: TestWorth | None = Field(default=None, description="null unless the steps to go are said")
    engine_rank: int | None = Field(default=None, description="rank among all candidates of the engine")
    agents_idea: bool = Field(
        default=False, description="not listed by the engine: proposed by the agent, then checked"
    )
    regret: Quantity | None = Field(default=None, description="what the engine expects to be lost against its first")
    prose: str | None = Field(default=None, description="what the agent wrote for it; every figure was checked")


class Recommendation(BaseModel):
    """Which proposal to run first, or to keep what there is."""

    model_config = ConfigDict(frozen=True)

    first: int | None = Field(description="rank of the proposal to run first; None if there is none")
    keep_incumbent: bool
    statement: str
    setting: str | None = Field(default=None, description="a setting beside every plan to try before any of them")
    lines: tuple[str, ...] = Field(default=(), description="what to paste for a change that is no proposal")
    prose: str | None = Field(default=None, description="what the agent wrote; every figure was checked")
