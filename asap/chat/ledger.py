"""The ledger of stated facts: recording and echoing them, taking them back, and doubting what cannot be."""

from collections.abc import Sequence

from asap.chat.answers.measurements import against_prediction
from asap.chat.answers.phrasing import list_proposals
from asap.chat.conversation import Conversation
from asap.chat.evidence.anchor import implied_step, modelled_now
from asap.chat.evidence.claims import Claim
from asap.chat.evidence.fact import StatedFact
from asap.chat.evidence.step_time import current_step_time
from asap.chat.reply import ReplyBuilder
from asap.chat.understanding.topics.topics import Topic
from asap.core.errors import InsufficientEvidenceError
from asap.core.units import format_percent, format_seconds, significant
from asap.plans import Plan

HIGHEST_PUBLISHED_MFU = 0.69
"""Of all runs in tests/data/measurements: MaxText on v5p, by the FLOPs of PaLM (arXiv:2204.02311, appendix B)."""
IMPLAUSIBLE_MFU = 0.75
"""Above it a figure is asked about: a little more than was ever published."""
_MOST_OF_HBM = 1.0
NOT_COMPARED = "It cannot be compared yet: the step time of the current plan is not known."
_NEAR = 0.01
"""A step that follows from a stated MFU or throughput agrees with a stated one within so much."""


def record(
    conversation: Conversation, answer: ReplyBuilder, facts: Sequence[StatedFact], corrected: Sequence[StatedFact] = ()
) -> None:
    """Put facts on record, say how each was read, and what they change."""
    answer.topic = Topic.EVIDENCE
    before, old_step = conversation.order, current_step_time(conversation.study, conversation.evidence)
    earlier = list(conversation.evidence)
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
            f"Recorded as evidence: {_echo(conversation, fact, before)} ({fact.origin})"
            f" · /forget {conversation.number(fact)}"
        )
        answer.add(*_notes(conversation, fact, earlier))
    answer.add(*_learned(conversation, old_step))
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


def doubts(
    conversation: Conversation, facts: Sequence[StatedFact]
) -> tuple[list[StatedFact], list[tuple[StatedFact, str]]]:
    """Facts that can be taken, and those that cannot be true or need a question first, with the reason."""
    sound: list[StatedFact] = []
    uncertain: list[tuple[StatedFact, str]] = []
    for fact in facts:
        reason = _contradiction(conversation, fact)
        if reason is None:
            sound.append(fact)
        else:
            uncertain.append((fact, reason))
    return sound, uncertain


def _contradiction(conversation: Conversation, fact: StatedFact) -> str | None:
    """Why the hardware cannot have done this; ``None`` if it can."""
    value = fact.value or 0.0
    if fact.claim is Claim.MFU and value > IMPLAUSIBLE_MFU:
        return (
            f"An MFU of {format_percent(value, 0)} is above every published training run"
            f" (the highest: {HIGHEST_PUBLISHED_MFU:.0%}): is it HFU, a duty cycle, or of another peak?"
        )
    if fact.claim is Claim.HBM_SHARE and value > _MOST_OF_HBM:
        return "More than all of the HBM cannot be in use."
    if fact.claim is Claim.HBM_BYTES and conversation.study.slice is not None:
        chip = conversation.study.slice.chip
        if value > 1.02 * chip.hbm_bytes / chip.devices:
            return f"A device of {chip.title} has less HBM than that."
    mfu = _mfu_of(conversation, fact)
    if mfu is not None and mfu > IMPLAUSIBLE_MFU:
        return (
            f"That step would be an MFU of {format_percent(mfu, 0)} on this hardware, above every published training"
            " run: is it of this model, batch and number of chips?"
        )
    return None


def _mfu_of(conversation: Conversation, fact: StatedFact) -> float | None:
    """The MFU that a stated step time or throughput amounts to."""
    now = modelled_now(conversation.study)
    if now is None or now.mfu is None or now.step_time is None or not fact.value:
        return None
    tokens = conversation.study.experiment.workload.tokens
    seconds = fact.value if fact.claim is Claim.STEP_TIME else None
    if fact.claim is Claim.THROUGHPUT and tokens:
        seconds = tokens / fact.value
    return now.mfu.value * now.step_time.value / seconds if seconds else None


def _echo(conversation: Conversation, fact: StatedFact, order: Sequence[Plan]) -> str:
    """A fact with its plan, metric, value and unit, and what a relative one makes in seconds."""
    study = conversation.study
    name = ""
    if fact.plan is not None and fact.plan == study.plan and fact.claim is not Claim.INCUMBENT:
        name = "what runs now, "
    elif fact.plan in order:
        name = f"proposal {order.index(fact.plan) + 1}, "
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
    if fact.claim is Claim.STEP_TIME and current_step_time(conversation.study, conversation.evidence) is None:
        notes += _learned_of_another(conversation) or [NOT_COMPARED]
    if fact.claim is Claim.FASTER:
        notes.append('By how much? State a figure: "proposal 1 measured 2.1 s".')
    implied = implied_step(conversation.study, fact)
    if implied is not None:
        notes.append(f"With this model and batch that is a step of {format_seconds(implied.value)}.")
    return notes


def _learned(conversation: Conversation, old: object) -> list[str]:
    """How a newly measured step of what runs now moves the predictions."""
    now = current_step_time(conversation.study, conversation.evidence)
    modelled = modelled_now(conversation.analysed_study)
    if now is None or now == old or modelled is None or modelled.step_time is None:
        return []
    factor = now.value / modelled.step_time.value
    if abs(factor - 1) < _NEAR:
        return []
    return [
        f"Every prediction is anchored to it: {format_seconds(modelled.step_time.value)} was predicted for what runs"
        f" now, so all step times are taken {significant(factor)} times as long."
    ]


def _learned_of_another(conversation: Conversation) -> list[str]:
    """How the measured step of another plan moves the prediction of what runs now, and with it all others."""
    from asap.prediction.predict_study import expect

    study, before = conversation.study, modelled_now(conversation.analysed_study)
    if study.plan is None or study.profile is None or before is None or before.step_time is None:
        return []
    (now,) = expect(study, [study.plan])
    if now.step_time is None or abs(now.step_time.value / before.step_time.value - 1) < _NEAR:
        return []
    return [
        f"Every prediction is anchored to it: what runs now is expected at {format_seconds(now.step_time.value)} a step"
        f" instead of {format_seconds(before.step_time.value)}."
    ]


def _effect(conversation: Conversation, answer: ReplyBuilder, before: list[Plan], new: Sequence[StatedFact]) -> None:
    after = conversation.order
    reason = "; ".join(map(str, new))
    if before != after:
        answer.add(f"This evidence changes the order: {reason}.")
        answer.add(f"Before: {', '.join(map(str, before)) or 'nothing could be ranked'}. Now:")
    elif new:
        answer.add("All plans are evaluated again with it; the order stays:")
    elif answer.lines:
        answer.add("Nothing has changed. The order:")
    plans = [fact.plan for fact in new if fact.plan is not None]
    answer.focus = plans[-1] if plans else None
    try:
        list_proposals(conversation, answer)
    except InsufficientEvidenceError as error:
        answer.add(f"No plan can be ranked: {error.message}.")
