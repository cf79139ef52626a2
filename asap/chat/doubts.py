"""Stated facts that cannot be true of this run, or need a question first."""

from collections.abc import Sequence

from asap.chat.answers.single_plans.figures import prediction_of
from asap.chat.conversation import Conversation
from asap.chat.understanding.quantities.amounts import amounts
from asap.chat.understanding.references.meant import plan_meant
from asap.chat.understanding.references.references import references
from asap.chat.understanding.scene import Scene
from asap.chat.understanding.statements.clauses import read_clause
from asap.core.units import format_percent, format_seconds
from asap.evidence.anchor import modelled_now
from asap.evidence.claims import Claim
from asap.evidence.fact import StatedFact
from asap.evidence.plausibility import HIGHEST_PUBLISHED_MFU, IMPLAUSIBLE_MFU, mfu_of_step

_MOST_OF_HBM = 1.0
_ROUNDED = 0.02
"""Share by which a figure that is quoted may be rounded."""
_FAR = 4.0
"""Times by which no prediction is off."""


def doubts(
    conversation: Conversation, facts: Sequence[StatedFact], line: str = ""
) -> tuple[list[StatedFact], list[tuple[StatedFact, str]]]:
    """Facts that can be taken, and those that cannot be true or need a question first, with the reason."""
    sound: list[StatedFact] = []
    uncertain: list[tuple[StatedFact, str]] = []
    for fact in facts:
        reason = _contradiction(conversation, fact, line) or _of_a_proposal(conversation, fact, line)
        if reason is None:
            sound.append(fact)
        else:
            uncertain.append((fact, reason))
    return sound, uncertain


def _contradiction(conversation: Conversation, fact: StatedFact, line: str) -> str | None:
    """Why the hardware cannot have done this, or what has to be asked; ``None`` if it can be taken."""
    value = fact.value or 0.0
    if fact.claim is Claim.MFU and value > IMPLAUSIBLE_MFU:
        return (
            f"An MFU of {format_percent(value, 0)} is above every published training run"
            f" (the highest: {format_percent(HIGHEST_PUBLISHED_MFU, 0)}): is it HFU, a duty cycle, or of another peak?"
        )
    if fact.claim is Claim.HBM_SHARE and value > _MOST_OF_HBM:
        return "More than all of the HBM cannot be in use."
    if fact.claim is Claim.HBM_BYTES and conversation.study.slice is not None:
        chip = conversation.study.slice.chip
        if value > 1.02 * chip.hbm_bytes / chip.devices:
            return f"A device of {chip.title} has less HBM than that."
    if fact.claim is Claim.THROUGHPUT and _is_of_a_chip(conversation, fact):
        return (
            "Is that of each chip, or of all of them? Of all it would be far below what is expected: say it per chip."
        )
    if fact.claim is Claim.OUT_OF_MEMORY and _may_be_of_now(conversation, fact, line):
        return f'Of which plan? What runs now does not fit either, as far as is predicted. Say "{fact}" if it was that.'
    mfu = _mfu_of(conversation, fact)
    if mfu is not None and mfu > IMPLAUSIBLE_MFU:
        return (
            f"That step would be an MFU of {format_percent(mfu, 0)} on this hardware, above every published training"
            " run: is it of this model, batch and number of chips?"
        )
    return None


def _is_of_a_chip(conversation: Conversation, fact: StatedFact) -> bool:
    """Whether a rate is too low for all chips, and as one of each chip it is not."""
    now = modelled_now(conversation.study)
    if fact.stated is not None or now is None or now.tokens_per_second is None or not fact.value:
        return False
    expected, devices = now.tokens_per_second.value, now.plan.devices
    return devices > 1 and fact.value * _FAR < expected < fact.value * devices * _FAR


def _may_be_of_now(conversation: Conversation, fact: StatedFact, line: str) -> bool:
    """Whether a run that died may be the one of now: no plan is named, and that one is predicted not to fit."""
    now = conversation.study.plan
    if now is None or fact.plan == now:
        return False
    scene, said = conversation.scene, line or fact.words
    if plan_meant(said, scene.opening, now) or _names_plan(said, scene):
        return False
    held = prediction_of(conversation, now).memory
    return held is not None and held.verdict == "does not fit"


def _names_plan(line: str, scene: Scene) -> bool:
    """Whether a line says which plan it is of, other than by pointing at the one spoken of."""
    return any(mention.way != "pointing" for mention in read_clause(line, scene).refs.mentions)


def _of_a_proposal(conversation: Conversation, fact: StatedFact, line: str) -> str | None:
    """Asks whose step it is that is set against the predicted step of a proposal, where the line names no plan."""
    if fact.claim is not Claim.STEP_TIME or fact.plan != conversation.study.plan:
        return None
    if references(line, conversation.order, None, None).mentions:
        return None
    quoted = [one.value for one in amounts(line) if one.unit == "s" and one.value != fact.value]
    for rank, plan in enumerate(conversation.order, 1):
        step = prediction_of(conversation, plan).step_time
        if step is not None and any(abs(value - step.value) <= _ROUNDED * step.value for value in quoted):
            return (
                f"{format_seconds(step.value)} is what proposal {rank} is predicted to take. Did it run? Say"
                f' "proposal {rank} measured {fact.value:g} s", or "the baseline takes {fact.value:g} s".'
            )
    return None


def _mfu_of(conversation: Conversation, fact: StatedFact) -> float | None:
    """The MFU that a stated step time or throughput amounts to."""
    tokens = conversation.study.experiment.workload.tokens
    if not fact.value:
        return None
    if fact.claim is Claim.STEP_TIME:
        return mfu_of_step(conversation.study, fact.value)
    return mfu_of_step(conversation.study, tokens / fact.value) if fact.claim is Claim.THROUGHPUT and tokens else None
