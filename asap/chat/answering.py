"""A command answered: the query is asked of the run, and its answer is put into words."""

from asap.answers.query import Answer
from asap.answers.registry import query
from asap.chat.conversation import Conversation
from asap.chat.language import Command
from asap.chat.reply import Figure, Reply
from asap.chat.sweeps import default_values
from asap.chat.written import written
from asap.core.errors import AsapError, UsageError
from asap.core.text import plain
from asap.evidence.fact import StatedFact
from asap.reports.answers.blocks import figures_of
from asap.reports.answers.text import to_text


def answer(conversation: Conversation, command: Command) -> Reply:
    """The reply to a command that asks a query; what it cannot do stands in the text, in one line."""
    before, facts = _order(conversation), conversation.evidence
    try:
        found = ask(conversation, command)
    except AsapError as error:
        return Reply(topic=command.name, text=f"! {plain(error)}", ranking=before)
    return reply_of(conversation, command.name, found, before, facts)


def reply_of(
    conversation: Conversation, topic: str, found: Answer, before: tuple[str, ...], facts: tuple[StatedFact, ...]
) -> Reply:
    """An answer as a reply, with what changed since."""
    after, now = _order(conversation), conversation.evidence
    new = tuple(fact for fact in now if fact not in facts)
    text = to_text(found).rstrip("\n")
    forget = "".join(f"\n/forget {conversation.inquiry.number(fact)} takes it back." for fact in new)
    return Reply(
        topic=topic,
        text=f"{text}{forget}",
        facts=tuple(Figure(what=one.id, quantity=one) for one in figures_of(found)),
        evidence=new,
        retracted=tuple(fact for fact in facts if fact not in now and not any(one.supersedes(fact) for one in new)),
        changed=before != after,
        ranking=after,
    )


def ask(conversation: Conversation, command: Command) -> Answer:
    """The answer to a command's query.

    Raises:
        AsapError: what is asked for is not known, cannot be read, or cannot run.
    """
    inquiry, arguments = conversation.inquiry, dict(command.arguments)
    if command.name == "record":
        arguments["words"] = written(command)
    if command.name == "sweep" and "values" not in arguments:
        arguments["values"] = default_values(arguments["vary"], inquiry)
        if not arguments["values"]:
            raise UsageError("needs values", where=f"sweep {plain(arguments['vary'], 40)}", hint="sweep batch 128 256")
    return query(command.name, arguments).answer(inquiry)


def _order(conversation: Conversation) -> tuple[str, ...]:
    return tuple(map(str, conversation.order))
