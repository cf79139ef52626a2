"""A plan tried: one run with the user's command, or one compilation; the outcome is evidence."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from asap.chat.answering import Figure, Reply
from asap.chat.conversation import Conversation
from asap.chat.session import RunCommand
from asap.core.text import plain
from asap.evidence.fact import Claim, StatedFact
from asap.optimize.loop import optimize
from asap.optimize.outcome import Code, Expectation, Outcome, Suggestion, Try
from asap.optimize.request import Budget, Request
from asap.optimize.session import Session, only_session
from asap.optimize.stopping import StoppingRule
from asap.optimize.table import line_of, worth_in_words
from asap.plans import Plan
from asap.prediction.predict_study import expect
from asap.sharding_memory import new_session_name


def cost_in_words(conversation: Conversation, plan: Plan, how: RunCommand) -> str:
    """What a run would spend, and of what."""
    request = _request(conversation, how)
    slice_ = conversation.study.slice
    rule = request.rule(_modelled_s(conversation, plan))
    worth = worth_in_words(rule.worth((), Suggestion(configuration=str(plan), why="")))
    chips = f" on {slice_.chips} x {slice_.chip.title}" if slice_ else ""
    return f"This runs {plan}{chips} once{f', and {worth}' if worth else ''}: {plain(how.command, 200)}"


def run_plan(conversation: Conversation, plan: Plan, how: RunCommand, report: Callable[[str], None]) -> Reply:
    """Run a configuration once, and put on record what came of it.

    Raises:
        UsageError: the command takes no overrides, or another session measures the experiment.
        PlanError: the launcher has no words for the plan.
    """
    inquiry, before = conversation.inquiry, conversation.order
    request = _request(conversation, how)
    request.overrides(str(plan))
    expected = Expectation(step_time_s=_modelled_s(conversation, plan))
    with only_session(conversation.id):
        name = new_session_name()
        evaluator = request.evaluator(name, report)
        session = Session.start(name, request.model_dump(mode="json"))
        optimize(session, _Once(str(plan), expected), evaluator, StoppingRule(evaluations=1))
    done = session.tries[0]
    assert done.outcome is not None
    new = inquiry.record([] if done.outcome.status == "lost" else _evidence(plan, done.outcome, session.name))
    lines = [f"{line_of(done)}; session {session.name}."]
    lines += [f"On record: {fact} ({fact.said_by}). /forget {inquiry.number(fact)} takes it back." for fact in new]
    return Reply(
        topic="try", text="\n".join(lines), evidence=new,
        changed=before != conversation.order, ranking=conversation.ranking,
    )  # fmt: skip


def _evidence(plan: Plan, outcome: Outcome, session: str) -> list[StatedFact]:
    """What a run says of its plan; nothing where it died for a reason that may not be the plan's."""
    words = f"session {session}"
    if outcome.step_time_s is not None:
        fact = StatedFact(
            claim=Claim.STEP_TIME, plan=plan, value=outcome.step_time_s, words=words, origin="session", session=session
        )
        return [fact]
    if Code.OUT_OF_MEMORY in outcome.codes:
        return [StatedFact(claim=Claim.OUT_OF_MEMORY, plan=plan, words=words, origin="session", session=session)]
    return []


def _request(conversation: Conversation, how: RunCommand) -> Request:
    study = conversation.study
    return Request(
        experiment=study.experiment, evaluate="run", budget=Budget(evaluations=1), command=how.command,
        config=str(how.config) if how.config else None, folder=str(how.folder.resolve()),
        prices=dict(study.preferences.prices), currency=study.preferences.currency,
    )  # fmt: skip


def _modelled_s(conversation: Conversation, plan: Plan) -> float:
    (found,) = expect(conversation.study, [plan])
    return found.step_time.value if found.step_time else float("inf")


@dataclass(frozen=True)
class _Once:
    """Proposes one configuration."""

    configuration: str
    expected: Expectation

    def propose(self, tries: Sequence[Try]) -> Suggestion | None:
        del tries
        return Suggestion(configuration=self.configuration, why="asked for in the chat", predicted=self.expected)


def verified(conversation: Conversation, named: str, report: Callable[[str], None]) -> Reply:
    """Compile a plan.

    Raises:
        AsapError: the plan cannot be read, or nothing can be compiled here.
    """
    from asap.compiler.verdict import compiled_evidence
    from asap.compiler.verify import verify

    inquiry, before = conversation.inquiry, conversation.order
    plan = inquiry.plan(named)
    (found,) = verify(conversation.study.experiment, [plan], conversation.compile_options, report)
    new = inquiry.record(compiled_evidence(found))
    lines = [f"{found.plan}: {found.verdict}", *(f"- {line}" for line in (*found.differences, *found.notes))]
    lines += [f"On record: {fact} ({fact.said_by}). /forget {inquiry.number(fact)} takes it back." for fact in new]
    figures = (Figure(what=f"{found.plan}: step time", quantity=found.step_time),) if found.step_time else ()
    return Reply(
        topic="verify", text="\n".join(lines), facts=figures, evidence=new,
        changed=before != conversation.order, ranking=conversation.ranking,
    )  # fmt: skip
