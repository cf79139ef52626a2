"""What a line is read against: the run, its proposals, what was spoken of last, what is on record."""

from dataclasses import dataclass
from itertools import zip_longest

from pydantic import BaseModel, ConfigDict

from asap.chat.understanding.quantities.changes import Change
from asap.chat.understanding.quantities.things import Thing
from asap.chat.understanding.topics.topics import Topic
from asap.evidence.fact import StatedFact
from asap.plans import Plan
from asap.plans.axes import Axis
from asap.study.study import Study


class Context(BaseModel):
    """What was spoken of last, on record with each reply."""

    model_config = ConfigDict(frozen=True)

    topic: Topic | None = None
    plans: tuple[Plan, ...] = ()
    change: Change | None = None
    tokens: float | None = None
    dollars: float | None = None
    steps: float | None = None
    timed: float | None = None
    """Steps of which it was asked how long they take."""
    operations: tuple[str, ...] = ()
    criterion: str | None = None
    axis: Axis | None = None
    limits: tuple[StatedFact, ...] = ()
    asked: Thing | None = None
    figure: str | None = None
    """The report of a figure that had no unit."""
    offered: tuple[str, ...] | None = None
    """Questions of which one was to be picked."""
    term: str | None = None
    """The word that was explained."""
    goal: float | None = None
    """Tokens a second that are wanted."""

    @property
    def counted(self) -> str | None:
        """What a question was asked of so many of: steps, or tokens to train on."""
        return "steps" if self.timed is not None else "tokens" if self.tokens is not None else None


NO_CONTEXT = Context()


@dataclass(frozen=True)
class Scene:
    """What a line is read against.

    Args:
        study: the run, with what was stated about it.
        order: the proposals, best first.
        focus: the plan that was spoken of last.
        context: what a question may leave out.
        known: facts on record, oldest first.
        refused: facts of the last message that were not taken, which a correction may be of.
        opening: the proposals that the conversation began with, best first.
        latest: facts that the last message put on record.
        line: the last line.
    """

    study: Study
    order: tuple[Plan, ...]
    focus: Plan | None = None
    context: Context = NO_CONTEXT
    known: tuple[StatedFact, ...] = ()
    opening: tuple[Plan, ...] = ()
    refused: tuple[StatedFact, ...] = ()
    latest: tuple[StatedFact, ...] = ()
    line: str | None = None

    @property
    def tested(self) -> tuple[Plan, ...]:
        """The proposals by the numbers under which somebody has run them.

        Nobody has run yet what was proposed a moment ago: a number is of the list that the conversation began with,
        until the result of that plan is known.
        """
        reported = [fact.plan for fact in self.known]
        pairs = zip_longest(self.opening, self.order)
        return tuple(new if old is None or (new and old in reported) else old for old, new in pairs)
