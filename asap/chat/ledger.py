"""The ledger of stated facts: recording and echoing them, taking them back."""

from collections.abc import Sequence

from asap.chat.answers.phrasing import list_proposals
from asap.chat.answers.proposals.measurements import against_prediction, memory_against_prediction
from asap.chat.conversation import Conversation
from asap.chat.lessons import anchored_to_another, anchored_to_step, expectations, moved_with
from asap.chat.reply import ReplyBuilder
from asap.chat.understanding.topics.topics import Topic
from asap.core.errors import InsufficientEvidenceError
from asap.core.units import format_seconds
from asap.evidence.anchor import implied_step
from asap.evidence.claims import Claim
from asap.evidence.fact import HBM, StatedFact
from asap.evidence.step_time import current_step_time
from asap.plans import Plan

NOT_COMPARED = "It cannot be compared yet: the step time of the current plan is not known."


def record(
    conversation: Conversation, answer: ReplyBuilder, facts: Sequence[StatedFact], corrected: Sequence[StatedFact] = ()
) -> None:
    """Put facts on record, say how each was read, and what they change."""
    answer.topic = Topic.EVIDENCE
    before, old_step = conversation.order, current_step_time(conversation.study, conversation.evidence)
    earlier, expected = list(conversation.evidence), expectations(conversation)
    known = [fact for fact in facts if fact in conversation.evidence]
    new = [fact for fact in facts if fact not in conversation.evidence]
    if corrected:
        conversation.retract(corrected)
        answer.retracted += corrected
        answer.add(*(f"Withdrawn: {fact}." for fact in corrected))
    conversation.add_evidence(new)
    answer.evidence += new
    answer.add(*(f"Already on record: {fact} (/forget {conversation.number(fact)})." for fact in known))
    for fact in new:
        answer.add(
            f"Recorded as evidence: {_echo(conversation, fact, before)} ({fact.said_by})"
            f" · /forget {conversation.number(fact)}"
        )
        answer.add(*_notes(conversation, fact, earlier))
    answer.add(*anchored_to_step(conversation, old_step))
    if any(fact.claim in {Claim.STEP_TIME, Claim.RELATIVE} for fact in new):
        answer.add(*moved_with(conversation, expected))
    _effect(conversation, answer, before, new)


def retract(conversation: Conversation, answer: ReplyBuilder, facts: Sequence[StatedFact]) -> None:
    """Take facts off the record."""
    answer.topic = Topic.RETRACTION
    if not facts:
        answer.add("There is nothing of that on record to take back.")
        answer.add(
            *(
                f"{conversation.number(one)}. {one} · /forget {conversation.number(one)}"
                for one in conversation.evidence
            )
        )
        return
    before = conversation.order
    conversation.retract(facts)
    answer.retracted += facts
    for fact in facts:
        lifted = "lifted" if fact.claim is Claim.CONSTRAINT else "withdrawn"
        answer.add(f"Removed from the record, {lifted}: {fact}.")
    answer.add("The order changes back:" if before != conversation.order else "The order stays:")
    list_proposals(conversation, answer)


def _echo(conversation: Conversation, fact: StatedFact, order: Sequence[Plan]) -> str:
    """A fact with its plan, metric, value and unit, and what a relative one makes in seconds."""
    study = conversation.study
    name = ""
    if fact.plan is not None and fact.plan == study.plan and fact.claim is not Claim.INCUMBENT:
        name = "what runs now, "
    elif fact.plan in order:
        name = f"proposal {order.index(fact.plan) + 1}, "
    elif fact.plan in conversation.opening:
        name = f"proposal {conversation.opening.index(fact.plan) + 1} of the list that this chat began with, "
    text = f"{name}{fact}"
    now = current_step_time(study, conversation.evidence)
    if fact.claim is Claim.RELATIVE and fact.value:
        said = f"{fact.stated:g} {fact.unit}" if fact.stated is not None else f"{fact.value:.3g} of the step"
        text += f", as {said} than what runs now"
        text += f" ({format_seconds(now.value)}): {format_seconds(fact.value * now.value)}" if now else ""
    return text


def _notes(conversation: Conversation, fact: StatedFact, earlier: Sequence[StatedFact]) -> list[str]:
    """What a fact contradicts, or lacks to be used."""
    recorded = conversation.analysed_study.experiment.workload
    on_file = {Claim.BATCH: recorded.global_batch, Claim.SEQUENCE: recorded.sequence_length}.get(fact.claim)
    notes = []
    if on_file is not None and on_file != fact.value:
        notes.append(f"The record of the run says {on_file}; this session uses what you stated.")
    for old in earlier:
        if fact.supersedes(old) and old.value != fact.value:
            notes.append(f"It replaces what you said earlier: {old}.")
    if fact.claim in {Claim.STEP_TIME, Claim.RELATIVE}:
        notes += against_prediction(conversation, fact)
    notes += memory_against_prediction(conversation, fact)
    if fact.claim is Claim.STEP_TIME and current_step_time(conversation.study, conversation.evidence) is None:
        notes += anchored_to_another(conversation) or [NOT_COMPARED]
    if fact.about == HBM and all(one.prediction.memory is None for one in conversation.revised.ranked.candidates):
        notes.append("HBM is not predicted for this run: the limit rules no plan out.")
    if fact.claim is Claim.FASTER:
        notes.append('By how much? State a figure: "proposal 1 measured 2.1 s".')
    implied = implied_step(conversation.study, fact)
    if implied is not None:
        notes.append(f"With this model and batch that is a step of {format_seconds(implied.value)}.")
    return notes


def _effect(conversation: Conversation, answer: ReplyBuilder, before: list[Plan], new: Sequence[StatedFact]) -> None:
    after = conversation.order
    reason = "; ".join(map(str, new))
    if before != after:
        answer.add(f"This evidence changes the order: {reason}." if new else "That changes the order.")
        answer.add(f"Before: {', '.join(map(str, before)) or 'nothing could be ranked'}. Now:")
    elif new:
        answer.add("All plans are evaluated again with it; the order stays:")
    elif answer.lines:
        answer.add("Nothing has changed. The order:")
    plans = [fact.plan for fact in new if fact.plan is not None]
    ruled_out = conversation.focus in before and conversation.focus not in after
    answer.focus = plans[-1] if plans else after[0] if ruled_out and after else None
    try:
        list_proposals(conversation, answer)
    except InsufficientEvidenceError as error:
        answer.add(f"No plan can be ranked: {error.message}.")
