"""The slash commands of a chat."""

from collections.abc import Callable

from asap.agents.llm.preflight import check_model
from asap.agents.llm.usage import in_words, summed, usages
from asap.agents.settings import BUILTIN
from asap.chat.answers import by_topic
from asap.chat.answers.phrasing import list_proposals
from asap.chat.answers.proposals.order import ranking as ranking_answers
from asap.chat.answers.single_plans import plans as plan_answers
from asap.chat.answers.single_plans.whole_plan import whole
from asap.chat.answers.talk.help_text import COMMANDS
from asap.chat.answers.this_run import run as run_answers
from asap.chat.ledger import retract
from asap.chat.reply import Reply, ReplyBuilder
from asap.chat.routing import answer_question
from asap.chat.session import ChatSession
from asap.chat.understanding.message import Command
from asap.chat.understanding.question_reading import read_question
from asap.chat.understanding.references.references import references
from asap.compiler.evidence import compiled_evidence
from asap.core.errors import AsapError, UsageError
from asap.core.text import plain
from asap.evidence.record import EVIDENCE
from asap.plans import Plan
from asap.sharding_memory import Kind, export_session, read_session, readable

Handler = Callable[[ChatSession, str, ReplyBuilder], None]


def run_command(chat: ChatSession, command: Command) -> Reply | None:
    """Run a line that begins with a slash; ``None`` if it ends the chat."""
    name = command.name
    if name in {"quit", "exit", "q"}:
        chat.ended = True
        return None
    answer, before = ReplyBuilder(f"/{plain(name, 20)}"), _order(chat)
    try:
        handler = _HANDLERS.get(name)
        if handler is None:
            raise UsageError("no such command", where=f"/{plain(name, 20)}", hint="/help lists them")
        handler(chat, command.rest, answer)
    except AsapError as error:
        answer.add(f"! {plain(error)}")
    conversation = chat.conversation
    conversation.focus = answer.focus or conversation.focus
    after = _order(chat)
    return Reply(
        topic=answer.topic, text=answer.text, facts=tuple(answer.facts),
        evidence=tuple(answer.evidence), retracted=tuple(answer.retracted),
        changed=before != after, ranking=after, focus=conversation.focus,
        on_record=answer.on_record,
    )  # fmt: skip


def _order(chat: ChatSession) -> tuple[str, ...]:
    return tuple(str(candidate.plan) for candidate in chat.conversation.proposals)


def _help(chat: ChatSession, rest: str, answer: ReplyBuilder) -> None:
    answer.add(*COMMANDS.splitlines(), "")
    by_topic.help(chat.conversation, answer)


def _proposals(chat: ChatSession, rest: str, answer: ReplyBuilder) -> None:
    ranking_answers.proposals(chat.conversation, answer)


def _explain(chat: ChatSession, rest: str, answer: ReplyBuilder) -> None:
    plan_answers.explain(chat.conversation, answer, _plans(chat, rest, 1)[0], detailed=True)


def _compare(chat: ChatSession, rest: str, answer: ReplyBuilder) -> None:
    plan_answers.compare(chat.conversation, answer, _plans(chat, rest, 2), "in detail")


def _what_if(chat: ChatSession, rest: str, answer: ReplyBuilder) -> None:
    if not rest:
        raise UsageError("name a change or a plan", where="/whatif", hint='"batch 512", or "data=8 model=4"')
    answer_question(chat.conversation, answer, read_question(f"what if {rest}", chat.conversation.scene))


def _evidence(chat: ChatSession, rest: str, answer: ReplyBuilder) -> None:
    ranking_answers.evidence(chat.conversation, answer)


def _forget(chat: ChatSession, rest: str, answer: ReplyBuilder) -> None:
    conversation = chat.conversation
    known = {str(conversation.number(fact)): fact for fact in conversation.evidence}
    if rest not in known:
        hint = f"one of {', '.join(known)}" if known else "no fact is on record"
        raise UsageError("no such fact", where=plain(rest, 20) or "(nothing)", hint=hint)
    retract(conversation, answer, [known[rest]])


def _sources(chat: ChatSession, rest: str, answer: ReplyBuilder) -> None:
    run_answers.sources(chat.conversation, answer)


def _history(chat: ChatSession, rest: str, answer: ReplyBuilder) -> None:
    session = chat.conversation.session
    with readable(session):
        for record in read_session(session):
            if record.kind is Kind.USER_INPUT:
                answer.add(f"{record.time:%Y-%m-%d %H:%M} > {record.fields['text']}")
            elif record.kind is Kind.NOTE and record.fields.get("event") == EVIDENCE:
                answer.add(f"{record.time:%Y-%m-%d %H:%M}   recorded: {record.fields['evidence']['words']}")


def _verify(chat: ChatSession, rest: str, answer: ReplyBuilder) -> None:
    from asap.compiler.verify import verify

    plans, conversation = _plans(chat, rest, 1), chat.conversation
    for found in verify(conversation.study.experiment, plans[:1], conversation.compile_options, chat.progress):
        answer.add(f"{found.plan}: {found.verdict}", *(f"- {line}" for line in (*found.differences, *found.notes)))
        answer.add_figure(f"{found.plan}: step time", found.step_time)
        new = [item for item in compiled_evidence(found) if item not in conversation.evidence]
        conversation.add_evidence(new)
        answer.evidence += new
        answer.add(*(f"Recorded as evidence: {item} ({item.said_by})." for item in new))
    if answer.evidence:
        list_proposals(conversation, answer)


def _try(chat: ChatSession, rest: str, answer: ReplyBuilder) -> None:
    from asap.chat.run_plan import cost_in_words, run_plan

    conversation, how = chat.conversation, chat.run_command
    if rest:
        plan = _plans(chat, rest, 1)[0]
    elif conversation.focus is not None:
        plan = plan_answers.whole(conversation, conversation.focus)
    else:
        raise UsageError("no plan was spoken of", where="/try", hint='/try 2, or /try "data=8 model=4"')
    if how is None:
        _verify(chat, str(plan), answer)
        return
    if not how.agreed and chat.offered != plan:
        answer.focus = plan
        answer.add(cost_in_words(conversation, plan, how))
        if chat.interactive:
            chat.offered = plan
            answer.add('Spend it? "Yes" runs it.')
        else:
            answer.add("! Nobody is here to agree to the cost: asap chat --yes agrees to it. Nothing was run.")
        return
    chat.offered = None
    run_plan(conversation, answer, plan, how, chat.progress)
    if answer.evidence:
        list_proposals(conversation, answer)


def _export(chat: ChatSession, rest: str, answer: ReplyBuilder) -> None:
    answer.add(*export_session(chat.conversation.session, "markdown").splitlines())
    answer.on_record = True


def _cost(chat: ChatSession, rest: str, answer: ReplyBuilder) -> None:
    for used in summed(usages(read_session(chat.conversation.session))):
        answer.add(f"{used.model}: {in_words(used)}")
    answer.add(f"now on {chat.model}")


def _model(chat: ChatSession, rest: str, answer: ReplyBuilder) -> None:
    if rest:
        check_model(rest)
        chat.settings = chat.settings.model_copy(update={"model": rest})
    note = "the engine answers directly" if chat.model == BUILTIN else "it words the engine's answers"
    answer.add(f"{plain(chat.model, 80)}: {note}")


def _plans(chat: ChatSession, rest: str, least: int) -> list[Plan]:
    conversation = chat.conversation
    order = [candidate.plan for candidate in conversation.proposals]
    refs = references(rest, order, None, conversation.study.plan, lone="all")
    plans = [whole(conversation, plan) for plan in refs.plans]
    if refs.missing:
        raise UsageError(f"there is no proposal {refs.missing[0]}", where=plain(rest, 80), hint="/proposals lists them")
    if len(plans) < least:
        hint = "/compare 1 3" if least > 1 else '2, or "data=8 model=4"'
        raise UsageError(f"name {least} of the proposals or plans", where=plain(rest, 80) or "(nothing)", hint=hint)
    return plans


_HANDLERS: dict[str, Handler] = {
    "help": _help,
    "proposals": _proposals,
    "explain": _explain,
    "compare": _compare,
    "whatif": _what_if,
    "evidence": _evidence,
    "facts": _evidence,
    "forget": _forget,
    "sources": _sources,
    "history": _history,
    "verify": _verify,
    "try": _try,
    "export": _export,
    "cost": _cost,
    "model": _model,
}
