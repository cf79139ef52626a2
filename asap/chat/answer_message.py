"""A message in, an answer of the engine out. Only evidence changes the order of the proposals."""

from asap.chat.answers.phrasing import insufficient_evidence, list_proposals
from asap.chat.conversation import Conversation
from asap.chat.evidence import Claim, StatedFact, current_step_time
from asap.chat.reply import Reply, ReplyBuilder
from asap.chat.routing import answer_question
from asap.chat.understanding.statements import Statements, read_statements
from asap.chat.understanding.topics import Topic
from asap.core.errors import AsapError, InsufficientEvidenceError
from asap.core.secrets import redacted
from asap.core.text import plain
from asap.plans import Plan
from asap.plans.prose import data_notes

LONGEST_MESSAGE = 4000


def answer_message(conversation: Conversation, text: str) -> Reply:
    """Answer one message; evidence in it is added to the conversation. Raises nothing of ASAP's own."""
    message = "\n".join(plain(redacted(line)) for line in text[:LONGEST_MESSAGE].replace("’", "'").splitlines())
    before = conversation.order
    answer, recorded = ReplyBuilder(Topic.UNKNOWN), ()
    try:
        statements = _read(conversation, message)
        new = tuple(item for item in statements.evidence if item not in conversation.evidence)
        conversation.add_evidence(new)
        recorded = new
        if statements.evidence or statements.complaints:
            _record_evidence(conversation, answer, statements, new, before)
        else:
            answer_question(conversation, answer, message, statements.supposed)
    except InsufficientEvidenceError as error:
        insufficient_evidence(conversation, error, answer)
    except AsapError as error:
        answer.add(f"{plain(error)}. Nothing has changed.")
    replicas = conversation.study.plan.degree("replica") if conversation.study.plan else 1
    answer.add(*(f"Note: {note}." for note in data_notes(message, replicas)))
    conversation.focus = answer.focus or conversation.focus
    after = conversation.order
    return Reply(
        topic=answer.topic,
        text=answer.text,
        facts=tuple(answer.facts),
        evidence=recorded,
        changed=before != after,
        ranking=tuple(map(str, after)),
        focus=conversation.focus,
    )


def _read(conversation: Conversation, text: str) -> Statements:
    order = conversation.order
    return read_statements(text, conversation.study, order, conversation.focus or (order[0] if order else None))


def _record_evidence(
    conversation: Conversation,
    answer: ReplyBuilder,
    statements: Statements,
    new: tuple[StatedFact, ...],
    before: list[Plan],
) -> None:
    answer.topic = Topic.EVIDENCE
    answer.add(*statements.complaints)
    answer.add(*(f"Already on record: {item}." for item in statements.evidence if item not in new))
    answer.add(*(f"Recorded as evidence: {item} ({item.origin})." for item in new))
    answer.add(*filter(None, (_caveat(conversation, item) for item in new)))
    after = conversation.order
    reason = "; ".join(map(str, new))
    if before != after:
        answer.add(f"This evidence changes the order: {reason}.")
        answer.add(f"Before: {', '.join(map(str, before)) or 'nothing could be ranked'}. Now:")
    elif new:
        answer.add("All plans are evaluated again with it; the order stays:")
    else:
        answer.add("Nothing has changed. The order:")
    plans = [item.plan for item in new if item.plan is not None]
    answer.focus = plans[-1] if plans else None
    list_proposals(conversation, answer)


def _caveat(conversation: Conversation, item: StatedFact) -> str | None:
    """Why a fact cannot be used yet, or what it contradicts."""
    recorded = conversation.analysed_study.experiment.workload
    earlier = {Claim.BATCH: recorded.global_batch, Claim.SEQUENCE: recorded.sequence_length}.get(item.claim)
    if earlier is not None and earlier != item.value:
        return f"The record of the run says {earlier}; this session uses what you stated."
    if item.claim is Claim.STEP_TIME and current_step_time(conversation.study, conversation.evidence) is None:
        return "It cannot be compared yet: the step time of the current plan is not known."
    if item.claim is Claim.FASTER:
        return 'By how much? State a figure: "proposal 1 measured 2.1 s".'
    return None
