"""A message in, an answer of the engine out. Only evidence changes the order of the proposals."""

import re
from contextlib import suppress

from asap.chat.answers.phrasing import insufficient_evidence
from asap.chat.conversation import Conversation
from asap.chat.ledger import doubts, record, retract
from asap.chat.reply import Reply, ReplyBuilder
from asap.chat.retractions import retracted_by
from asap.chat.routing import answer_question
from asap.chat.understanding.languages import in_english
from asap.chat.understanding.statements import Reader
from asap.chat.understanding.topics import Topic
from asap.core.errors import AsapError, InsufficientEvidenceError
from asap.core.secrets import redacted
from asap.core.text import plain
from asap.plans.prose import data_notes

LONGEST_MESSAGE = 4000
_YES = re.compile(r"^\W*(?:y|yes|yep|yeah|sure|correct|right|ja|oui|sí|si)\W*$", re.I)


def answer_message(conversation: Conversation, text: str, *, interactive: bool = False) -> Reply:
    """Answer one message; evidence in it is added to the conversation. Raises nothing of ASAP's own.

    Args:
        conversation: what was analysed, stated and spoken of.
        text: one line, in any language that the glossary knows.
        interactive: whether somebody can answer "y" to an uncertain fact; otherwise it is not taken.
    """
    said = "\n".join(plain(redacted(line)) for line in text[:LONGEST_MESSAGE].replace("’", "'").splitlines())
    message = "\n".join(in_english(line) for line in said.splitlines())
    before = conversation.order
    answer = ReplyBuilder(Topic.UNKNOWN)
    try:
        _answer(conversation, answer, message, interactive)
    except InsufficientEvidenceError as error:
        insufficient_evidence(conversation, error, answer)
    except AsapError as error:
        answer.add(f"{plain(error)}. Nothing has changed.")
    replicas = conversation.study.plan.degree("replica") if conversation.study.plan else 1
    with suppress(AsapError):
        answer.add(*(f"Note: {note}." for note in data_notes(message, replicas)))
    conversation.focus = answer.focus or conversation.focus
    conversation.context = answer.context or conversation.context
    after = conversation.order
    return Reply(
        topic=answer.topic,
        text=answer.text,
        facts=tuple(answer.facts),
        evidence=tuple(answer.evidence),
        retracted=tuple(answer.retracted),
        changed=before != after,
        ranking=tuple(map(str, after)),
        focus=conversation.focus,
        context=conversation.context,
    )


def _answer(conversation: Conversation, answer: ReplyBuilder, message: str, interactive: bool) -> None:
    pending, conversation.pending = conversation.pending, ()
    if pending and _YES.match(message):
        record(conversation, answer, pending)
        return
    if (gone := retracted_by(message, conversation)) is not None:
        retract(conversation, answer, gone)
        return
    order = conversation.order
    focus = conversation.focus or (order[0] if order else None)
    statements = Reader(conversation.study, order, focus, tuple(conversation.evidence)).read(message)
    if not statements.evidence and not statements.complaints:
        answer_question(conversation, answer, message, statements.supposed)
        return
    sound, uncertain = doubts(conversation, statements.evidence)
    answer.add(*statements.complaints)
    record(conversation, answer, sound, statements.corrected)
    for fact, doubt in uncertain:
        answer.topic = Topic.EVIDENCE
        answer.add(f"Not recorded: {fact}. {doubt}")
        if interactive:
            conversation.pending = (*conversation.pending, fact)
            answer.add("Record it all the same? y/n")
    for question in statements.questions:
        if question.rstrip().endswith("?"):
            answer_question(conversation, answer, question)
            answer.topic = Topic.EVIDENCE
