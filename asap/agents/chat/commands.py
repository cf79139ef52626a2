"""The slash commands: what one wants without asking in words."""

from collections.abc import Callable
from typing import TYPE_CHECKING

from asap.agents.chat import plan_answers, ranking_answers, run_answers
from asap.agents.chat.conversation import EVIDENCE
from asap.agents.chat.evidence import compiled_evidence
from asap.agents.chat.reading import numbers_mentioned, plans_mentioned
from asap.agents.chat.reply import Draft, Reply
from asap.agents.chat.what_if import is_change, what_if
from asap.agents.chat.wording import list_standing
from asap.agents.models import BUILTIN
from asap.agents.preflight import check_model
from asap.agents.usage import usages
from asap.core.errors import AsapError, UsageError
from asap.core.text import plain
from asap.plans import Plan
from asap.sharding_memory import Kind, export_session, read_session

if TYPE_CHECKING:
    from asap.agents.chat.turns import Chat

HELP = """\
/help            this
/proposals       the proposals as they stand
/explain N       reasons, costs, figures and citations of a proposal
/compare N M     proposals or plans side by side
/whatif PLAN     what the engine expects of a plan, or of "batch doubles"
/evidence        what you have stated or verified, and what it took out
/sources         where facts and figures come from
/history         what was said in this session
/verify N        what the TPU compiler makes of a proposal (takes minutes)
/export          the whole session as Markdown
/cost            calls and tokens of language models in this session
/model NAME      another language model from here on
/quit            the end; `asap chat` goes on later"""

Handler = Callable[["Chat", str, Draft], None]


def command(chat: "Chat", text: str) -> Reply | None:
    """Carry out a line that begins with a slash; ``None`` once the chat is to end."""
    name, _, rest = text.strip().removeprefix("/").partition(" ")
    if name in {"quit", "exit", "q"}:
        chat.ended = True
        return None
    answer, before = Draft(f"/{plain(name, 20)}"), _order(chat)
    try:
        handler = _HANDLERS.get(name)
        if handler is None:
            raise UsageError("no such command", where=f"/{plain(name, 20)}", hint="/help lists them")
        handler(chat, rest.strip(), answer)
    except AsapError as error:
        answer.say(f"! {plain(error)}")
    conversation = chat.conversation
    conversation.focus = answer.focus or conversation.focus
    after = _order(chat)
    return Reply(
        topic=answer.topic, text=answer.text, facts=tuple(answer.facts), evidence=tuple(answer.evidence),
        changed=before != after, ranking=after, focus=conversation.focus,
    )  # fmt: skip


def _order(chat: "Chat") -> tuple[str, ...]:
    return tuple(str(candidate.plan) for candidate in chat.conversation.standing)


def _help(chat: "Chat", rest: str, answer: Draft) -> None:
    answer.say(*HELP.splitlines(), "", *run_answers.HELP.splitlines())


def _proposals(chat: "Chat", rest: str, answer: Draft) -> None:
    ranking_answers.proposals(chat.conversation, answer)


def _explain(chat: "Chat", rest: str, answer: Draft) -> None:
    plan_answers.explain(chat.conversation, answer, _plans(chat, rest, 1)[0])


def _compare(chat: "Chat", rest: str, answer: Draft) -> None:
    plan_answers.compare(chat.conversation, answer, _plans(chat, rest, 2))


def _what_if(chat: "Chat", rest: str, answer: Draft) -> None:
    if is_change(rest):
        what_if(chat.conversation, answer, rest)
    else:
        plan_answers.why_not(chat.conversation, answer, _plans(chat, rest, 1)[0])


def _evidence(chat: "Chat", rest: str, answer: Draft) -> None:
    ranking_answers.evidence(chat.conversation, answer)


def _sources(chat: "Chat", rest: str, answer: Draft) -> None:
    run_answers.sources(chat.conversation, answer)


def _history(chat: "Chat", rest: str, answer: Draft) -> None:
    for record in read_session(chat.conversation.session):
        payload = record.payload
        if record.kind is Kind.USER_INPUT:
            answer.say(f"{record.time:%Y-%m-%d %H:%M} > {payload['text']}")
        elif record.kind is Kind.NOTE and payload.get("event") == EVIDENCE:
            answer.say(f"{record.time:%Y-%m-%d %H:%M}   recorded: {payload['evidence']['words']}")


def _verify(chat: "Chat", rest: str, answer: Draft) -> None:
    from asap.compiler.verify import verify

    plans, conversation = _plans(chat, rest, 1), chat.conversation
    for found in verify(conversation.study.experiment, plans[:1], conversation.compile_by, chat.progress):
        answer.say(f"{found.plan}: {found.verdict}", *(f"- {line}" for line in (*found.differences, *found.notes)))
        answer.rest_on(f"{found.plan}: step time", found.step_time)
        new = [item for item in compiled_evidence(found) if item not in conversation.evidence]
        conversation.take(new)
        answer.evidence += new
        answer.say(*(f"Recorded as evidence: {item} ({item.origin})." for item in new))
    if answer.evidence:
        list_standing(conversation, answer)


def _export(chat: "Chat", rest: str, answer: Draft) -> None:
    answer.say(*export_session(chat.conversation.session, "markdown").splitlines())


def _cost(chat: "Chat", rest: str, answer: Draft) -> None:
    for used in usages(read_session(chat.conversation.session)):
        money = "cost unknown" if used.cost is None else f"{used.cost:.4f} USD"
        tokens = f"{used.input_tokens} tokens in, {used.output_tokens} out"
        answer.say(f"{used.model}: {used.calls} calls, {tokens}, {money}")
    answer.say(f"now on {chat.model}")


def _model(chat: "Chat", rest: str, answer: Draft) -> None:
    if rest:
        check_model(rest)
        chat.settings = chat.settings.model_copy(update={"model": rest})
    note = "the engine words its own answers" if chat.model == BUILTIN else "it words what the engine answers"
    answer.say(f"{plain(chat.model, 80)}: {note}")


def _plans(chat: "Chat", rest: str, least: int) -> list[Plan]:
    conversation = chat.conversation
    order = [candidate.plan for candidate in conversation.standing]
    plans = plans_mentioned(rest, order, None, conversation.study.plan, bare=True)
    unknown = [n for n in numbers_mentioned(rest, len(order), bare=True) if n > len(order)]
    if unknown:
        raise UsageError(f"there is no proposal {unknown[0]}", where=plain(rest, 80), hint="/proposals lists them")
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
    "sources": _sources,
    "history": _history,
    "verify": _verify,
    "export": _export,
    "cost": _cost,
    "model": _model,
}
