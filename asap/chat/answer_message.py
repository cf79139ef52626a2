"""A message in, an answer of the engine out. Only evidence changes the order of the proposals."""

from collections.abc import Sequence
from contextlib import suppress

from asap.chat.answers.phrasing import insufficient_evidence
from asap.chat.answers.proposals.order.passed_over import asks_others, still_listed
from asap.chat.answers.proposals.testing.done import asks_what_is_left
from asap.chat.answers.talk.small_talk import hostile, unknown
from asap.chat.conversation import Conversation
from asap.chat.doubts import doubts
from asap.chat.ledger import record, retract
from asap.chat.reply import Reply, ReplyBuilder
from asap.chat.routing import answer_question
from asap.chat.understanding.message import LONGEST_MESSAGE, Message, read_message
from asap.chat.understanding.quantities.rematerialisation.own_selective import selective_note
from asap.chat.understanding.question import Question
from asap.chat.understanding.statements.statements import is_possible
from asap.chat.understanding.topics.topics import Topic
from asap.chat.understanding.words.settings.data_parallelism import data_parallelism_note
from asap.chat.understanding.words.settings.sequence_parallelism import sequence_parallelism_note
from asap.chat.understanding.words.vocabulary.languages import speaks_english
from asap.core.errors import AsapError, InsufficientEvidenceError
from asap.core.text import plain
from asap.evidence.claims import MEASURED_CLAIMS
from asap.evidence.fact import StatedFact
from asap.plans import Plan
from asap.plans.prose import data_notes


def answer_text(conversation: Conversation, text: str) -> Reply:
    """Read a line that is no command and answer it, as :func:`answer_message` does."""
    return answer_message(conversation, read_message(text, conversation.scene))


def answer_message(conversation: Conversation, message: Message, *, interactive: bool = False) -> Reply:
    """Answer one message; evidence in it is added to the conversation. Raises nothing of ASAP's own.

    Args:
        conversation: what was analysed, stated and spoken of.
        message: what was said.
        interactive: whether somebody can answer "y" to an uncertain fact; otherwise it is not taken.
    """
    before = conversation.order
    answer = ReplyBuilder(Topic.UNKNOWN)
    if message.cut:
        answer.add(f"That is long: only its first {LONGEST_MESSAGE:,} characters were read.")
    if message.log is not None:
        answer.topic = Topic.EVIDENCE
        answer.add(message.log)
    try:
        _answer(conversation, answer, message, interactive)
    except InsufficientEvidenceError as error:
        insufficient_evidence(conversation, error, answer)
    except AsapError as error:
        answer.add(f"{plain(error)}. Nothing has changed.")
    replicas = conversation.study.plan.degree("replica") if conversation.study.plan else 1
    with suppress(AsapError):
        of_sequences = sequence_parallelism_note(message.text, conversation.study)
        of_data = data_parallelism_note(message.said, conversation.study)
        notes = [*data_notes(message.text, replicas), *filter(None, (of_sequences, of_data))]
        read = (selective_note(each.text, each.change.remat, conversation.study) for each in message.questions)
        notes += dict.fromkeys(filter(None, read))
        answer.add(*(f"Note: {note}." for note in notes))
    if answer.topic == Topic.UNKNOWN and not speaks_english(message.text):
        answer.add("I read English; of some other languages I know only common words.")
    conversation.focus = answer.focus or conversation.focus
    conversation.context = answer.context or conversation.context
    conversation.line = message.text
    conversation.latest = tuple(answer.evidence)
    conversation.remember(answer.text)
    after = conversation.order
    return Reply(
        topic=answer.topic,
        text=answer.text,
        facts=tuple(answer.facts),
        evidence=tuple(answer.evidence),
        retracted=tuple(answer.retracted),
        refused=conversation.refused,
        changed=before != after,
        ranking=tuple(map(str, after)),
        focus=conversation.focus,
        context=conversation.context,
    )


def _answer(conversation: Conversation, answer: ReplyBuilder, message: Message, interactive: bool) -> None:
    refused, conversation.refused = conversation.refused, ()
    statements = message.statements
    if message.unreadable is not None:
        raise message.unreadable
    if message.command is not None:
        unknown(conversation, answer)
    elif message.pretends:
        answer.topic = Topic.HOSTILE
        hostile(conversation, answer)
    elif interactive and message.agrees and (possible := [fact for fact in refused if is_possible(fact)]):
        record(conversation, answer, possible)
    elif message.retracted is not None:
        if message.retracted or not message.questions:
            retract(conversation, answer, message.retracted)
        if statements.evidence:
            _take(conversation, answer, message, interactive)
            return
        for question in message.questions:
            answer_question(conversation, answer, question)
    elif statements.evidence or statements.complaints:
        _take(conversation, answer, message, interactive)
    else:
        for question in message.questions[:-1]:
            _one_of_several(conversation, answer, question, statements.supposed)
            conversation.focus = answer.focus or conversation.focus
        for question in message.questions[-1:]:
            answer_question(conversation, answer, question, statements.supposed)


def _one_of_several(
    conversation: Conversation, answer: ReplyBuilder, question: Question, supposed: tuple[StatedFact, ...]
) -> None:
    """Answer a question that others follow: what cannot be answered of it keeps none of them from an answer."""
    try:
        answer_question(conversation, answer, question, supposed)
    except InsufficientEvidenceError as error:
        insufficient_evidence(conversation, error, answer)
    except AsapError as error:
        answer.add(f"{plain(error)}.")


def _measured_plan(conversation: Conversation, facts: Sequence[StatedFact]) -> Plan | None:
    """The one plan beside what runs now that a line measured: what is asked next is of it."""
    measured = {fact.plan for fact in facts if fact.claim in MEASURED_CLAIMS}
    (plan,) = measured if len(measured) == 1 else (None,)
    return None if plan == conversation.study.plan else plan


def _take(conversation: Conversation, answer: ReplyBuilder, message: Message, interactive: bool) -> None:
    """Record what was stated, ask about what cannot be, and answer what was asked beside it."""
    statements = message.statements
    sound, uncertain = doubts(conversation, statements.evidence, message.text)
    before = conversation.order
    answer.add(*statements.complaints)
    record(conversation, answer, sound, statements.corrected)
    answer.add(*still_listed(conversation, before, message.text))
    answer.focus = _measured_plan(conversation, sound) or answer.focus
    conversation.refused = (*statements.impossible, *statements.incomplete, *(fact for fact, _ in uncertain))
    for fact, doubt in uncertain:
        answer.add(f"Not recorded: {fact}. {doubt}")
        if interactive:
            answer.add("Record it all the same? y/n")
    for question in message.questions:
        if not (asks_others(question) or asks_what_is_left(question)):  # the list stands there already
            answer_question(conversation, answer, question)
    answer.context = (answer.context or conversation.context).model_copy(update={"figure": statements.figure})
    answer.topic = Topic.EVIDENCE
