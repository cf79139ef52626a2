"""A conversation: one run that is open, what was stated of it since, and what was offered last."""

from dataclasses import dataclass, field

from asap.answers.inquiry import Inquiry
from asap.chat.language import Command
from asap.compiler.programs.options import REFERENCE_STEP, CompileOptions
from asap.evidence.fact import StatedFact
from asap.experiments import ExperimentStore
from asap.plans import Plan
from asap.study.study import Study


@dataclass
class Conversation:
    """What replies are computed from.

    Args:
        session: name of the worklog.
        inquiry: the run with the facts on record.
        compile_options: how the analysis compiled plans, and how the chat does.
        analysed_at: when, for people.
        stated: beside the record, when the run was analysed.
        offered: commands to choose from by number, of the last answer.
        hinted: whether it was said that a language model would understand more.
    """

    session: str
    inquiry: Inquiry
    compile_options: CompileOptions = REFERENCE_STEP
    analysed_at: str = ""
    stated: tuple[str, ...] = ()
    offered: tuple[Command, ...] = ()
    hinted: bool = field(default=False, repr=False)

    @property
    def id(self) -> str:
        """ID of the experiment."""
        return self.inquiry.id

    @property
    def study(self) -> Study:
        """The run with what was stated about it."""
        return self.inquiry.study

    @property
    def store(self) -> ExperimentStore:
        """Where experiments are kept."""
        return self.inquiry.store

    @property
    def evidence(self) -> tuple[StatedFact, ...]:
        """The facts on record, the oldest first."""
        return self.inquiry.facts

    @property
    def order(self) -> tuple[Plan, ...]:
        """Plans of the proposals, best first."""
        return self.inquiry.order

    @property
    def ranking(self) -> tuple[str, ...]:
        """The proposals as they are printed, best first."""
        return tuple(map(str, self.order))

    def opening(self, target: str) -> tuple[str, ...]:
        """Which analysis is discussed, how another is started, and the facts that are on record, a line each."""
        anew = " ".join((f"asap analyze {target}", *self.stated))
        beside = f" with {' '.join(self.stated)}" if self.stated else ""
        line = f"{self.id}{beside}, analysed {self.analysed_at}; session {self.session}. `{anew}` analyses it again."
        facts = (f"On record, {self.inquiry.number(one)}: {one} ({one.said_by})" for one in self.evidence)
        return (line, *facts)

    def afresh(self, session: str) -> "Conversation":
        """The same analysis in a session in which nothing was said yet."""
        return Conversation(session, self.inquiry.without_facts(), self.compile_options, self.analysed_at, self.stated)
