"""The commands that are of the session, and ask no query: help, history, export, cost, model, try."""

from collections.abc import Callable

from asap.agents.llm.models import check_model
from asap.agents.llm.usage import in_words, summed, usages
from asap.agents.settings import BUILTIN
from asap.chat.answering import Reply, answer
from asap.chat.language import Command
from asap.chat.session import ChatSession
from asap.chat.verbs import USAGE, about, unknown, verbs
from asap.core.text import plain
from asap.evidence.fact import EVIDENCE
from asap.sharding_memory import Kind, export_session, read_session, readable


def _help(chat: ChatSession, command: Command) -> Reply:
    verb = str(command.arguments.get("verb", ""))
    if not verb:
        return Reply(topic="help", text=verbs())
    if verb not in USAGE:
        raise unknown(verb)
    return Reply(topic="help", text=f"{USAGE[verb][0]}\n{about(verb)}")


def _history(chat: ChatSession, command: Command) -> Reply:
    lines, session = [], chat.conversation.session
    with readable(session):
        for record in read_session(session):
            if record.kind is Kind.USER_INPUT:
                lines.append(f"{record.time:%Y-%m-%d %H:%M} > {record.fields['text']}")
            elif record.kind is Kind.NOTE and record.fields.get("event") == EVIDENCE:
                lines.append(f"{record.time:%Y-%m-%d %H:%M}   recorded: {record.fields['evidence']['words']}")
    return Reply(topic="history", text="\n".join(lines), on_record=True)


def _export(chat: ChatSession, command: Command) -> Reply:
    return Reply(topic="export", text=export_session(chat.conversation.session, "markdown"), on_record=True)


def _cost(chat: ChatSession, command: Command) -> Reply:
    used = [f"{one.model}: {in_words(one)}" for one in summed(usages(read_session(chat.conversation.session)))]
    return Reply(topic="cost", text="\n".join([*used, f"now on {chat.model}"]))


def _model(chat: ChatSession, command: Command) -> Reply:
    name = str(command.arguments.get("name", ""))
    if name:
        check_model(name)
        chat.settings = chat.settings.model_copy(update={"model": name})
    note = "commands, and free words as far as a classifier goes" if chat.model == BUILTIN else "it reads and answers"
    return Reply(topic="model", text=f"{plain(chat.model, 80)}: {note}")


def _try(chat: ChatSession, command: Command) -> Reply:
    from asap.chat.run_plan import cost_in_words, run_plan

    conversation, how = chat.conversation, chat.run_command
    named = str(command.arguments.get("plan", "1"))
    if how is None:
        return verify_or_ask(chat, Command("verify", {"plan": named}))
    plan = conversation.inquiry.plan(named)
    if not how.agreed and chat.offered_run != plan:
        text = cost_in_words(conversation, plan, how)
        if not chat.interactive:
            return Reply(
                topic="try", text=f"{text}\n! Nobody is here to agree to the cost: `asap chat --yes` agrees to it."
            )
        chat.offered_run = plan
        return Reply(topic="try", text=f"{text}\nSpend it? The same command again runs it: try {named}")
    chat.offered_run = None
    return run_plan(conversation, plan, how, chat.progress)


def verify_or_ask(chat: ChatSession, command: Command) -> Reply:
    """A query; plans that are compiled are compiled as the session does, and what is found is put on record."""
    if command.name == "verify":
        from asap.chat.run_plan import verified

        return verified(chat.conversation, str(command.arguments.get("plan", "1")), chat.progress)
    return answer(chat.conversation, command)


SESSION_COMMANDS: dict[str, Callable[[ChatSession, Command], Reply]] = {
    "help": _help,
    "history": _history,
    "export": _export,
    "cost": _cost,
    "model": _model,
    "try": _try,
}
"""Each runs one; raises an AsapError where what is asked for does not exist, or cannot be done."""
