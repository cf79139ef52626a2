"""A reply: its text, its figures with their origin, and the effect of the engineer's evidence."""

from dataclasses import dataclass, field

from pydantic import BaseModel, ConfigDict, Field

from asap.chat.understanding.quantities.changes import Change
from asap.chat.understanding.scene import Context
from asap.core.provenance import Quantity
from asap.evidence.fact import StatedFact
from asap.plans import Plan


class Fact(BaseModel):
    """A figure that supports a reply."""

    model_config = ConfigDict(frozen=True)

    what: str
    quantity: Quantity


class Reply(BaseModel):
    """One answer of the built-in core."""

    model_config = ConfigDict(frozen=True)

    topic: str
    text: str
    facts: tuple[Fact, ...] = ()
    evidence: tuple[StatedFact, ...] = Field(default=(), description="what this message put on record")
    changed: bool = Field(default=False, description="whether the order of the proposals is another one now")
    ranking: tuple[str, ...] = Field(default=(), description="the proposals after this message, best first")
    focus: Plan | None = Field(default=None, description="the plan that was spoken of last")
    retracted: tuple[StatedFact, ...] = Field(default=(), description="what this message took off the record")
    refused: tuple[StatedFact, ...] = Field(default=(), description="what this message stated and is not on record")
    context: Context | None = Field(default=None, description="what a next question may leave out")
    on_record: bool = Field(default=False, exclude=True, description="whether the session holds the text already")


@dataclass
class ReplyBuilder:
    """Lines and facts while an answer is put together."""

    topic: str
    focus: Plan | None = None
    lines: list[str] = field(default_factory=list)
    facts: list[Fact] = field(default_factory=list)
    evidence: list[StatedFact] = field(default_factory=list)
    retracted: list[StatedFact] = field(default_factory=list)
    context: Context | None = None
    operations: tuple[str, ...] = ()
    change: Change | None = None
    change_of: tuple[Plan, ...] = ()
    limits: tuple[StatedFact, ...] = ()
    steps: float | None = None
    offered: tuple[str, ...] | None = None
    term: str | None = None
    goal: float | None = None
    """Tokens a second that are wanted."""
    starts_anew: bool = False
    """The next question leaves out nothing that was spoken of before."""
    on_record: bool = False
    complete: bool = False
    """Nothing that was said is left out: what is not answered is named."""

    def add(self, *lines: str) -> None:
        """Add lines."""
        self.lines.extend(lines)

    def add_figure(self, what: str, quantity: Quantity | None) -> None:
        """Name a figure that the lines use."""
        if quantity is not None:
            self.facts.append(Fact(what=what, quantity=quantity))

    @property
    def text(self) -> str:
        """All lines."""
        return "\n".join(self.lines)
