"""Answers on HBM: whether a plan fits, how tightly, and what fills it."""

import re
from dataclasses import replace

from asap.chat.answers.phrasing import expectation
from asap.chat.answers.single_plans.figures import prediction_of, say_unknown, subjects
from asap.chat.conversation import Conversation
from asap.chat.reply import ReplyBuilder
from asap.chat.understanding.ellipsis import LARGEST_PART
from asap.chat.understanding.question import Question
from asap.core.units import format_bytes, format_percent
from asap.evidence.claims import Claim
from asap.plans import Plan
from asap.prediction.prediction import MemoryPrediction

_PARTS = {
    "parameters": re.compile(r"\b(?:param(?:eter)?s?|weights)\b", re.I),
    "gradients": re.compile(r"\bgrad(?:ient)?s?\b", re.I),
    "optimizer": re.compile(r"\b(?:optimi[sz]er|opt|adam\w*|moments?)\b", re.I),
    "activations": re.compile(r"\bact(?:ivation)?s?\b", re.I),
    "temporaries": re.compile(r"\b(?:temp(?:orar(?:y|ies))?s?|scratch|logits|workspace)\b", re.I),
    "collectives": re.compile(r"\b(?:collectives?|communication buffers?|nccl buffers?)\b", re.I),
}
_FITS_ALONE = re.compile(r"(?!.*\b(?:why|what|which|how|breakdown|parts?|details?)\b).*\b(?:fits?|ooms?)\b", re.I)
"""Asks whether it fits, and not what fills it."""
_LOGITS = re.compile(r"\blogits?\b", re.I)
_DIES = re.compile(r"\boom\w*|\bout[- ]of[- ](?:\w+[- ])?memory\b|(?:\bnot|n't) fit\b", re.I)


def memory(conversation: Conversation, answer: ReplyBuilder, question: Question) -> None:
    """Whether plans fit into HBM, how tightly, and what fills it."""
    for name, prediction in subjects(conversation, _of_what_fails(conversation, question)):
        held = prediction.memory
        if held is None:
            say_unknown(conversation, answer, "how much HBM it needs", name)
            continue
        answer.add(*_part_first(question, name, held))
        free = held.capacity_bytes - held.total.value
        room = f"{format_bytes(free)} free" if free >= 0 else f"{format_bytes(-free)} too much"
        verdict = _verdict(conversation, prediction.plan, held)
        answer.add(
            f"{name} {verdict}: {format_bytes(held.total.value)} of {format_bytes(held.capacity_bytes)} HBM at its"
            f" peak on the fullest chip ({format_percent(held.total.value / held.capacity_bytes)}; {room};"
            f" {held.total.provenance.value}{_odds(held)}{_reserved(conversation, held.capacity_bytes)})"
        )
        answer.add(*_parts(question, held))
        other = prediction.plan != conversation.study.plan and prediction.plan.devices == _devices(conversation)
        if other and prediction.step_time is not None:
            answer.add(f"- beside that: {expectation(prediction)}")
        answer.add_figure(f"{prediction.plan}: HBM", held.total)
        answer.focus = prediction.plan
    profile = conversation.study.profile
    if profile is not None and profile.peak_hbm_bytes:
        answer.add(f"measured peak of what runs now: {format_bytes(profile.peak_hbm_bytes)}")
    for fact in conversation.evidence:
        if fact.claim in {Claim.HBM_SHARE, Claim.HBM_BYTES}:
            answer.add(f"stated: {fact}")


def _parts(question: Question, held: MemoryPrediction) -> list[str]:
    """Each part on a line; where it is only asked whether it fits, the largest two of what is too much."""
    known = [part for part in held.parts if part.size_bytes > 0]
    if not _FITS_ALONE.match(question.text):
        return [f"- {part.name}: {format_bytes(part.size_bytes)}" for part in known]
    largest = sorted(known, key=lambda part: -part.size_bytes)[:2]
    named = " and ".join(f"{part.name} {format_bytes(part.size_bytes)}" for part in largest)
    return [] if held.fits or not named else [f"- most of it: {named}"]


def _devices(conversation: Conversation) -> int | None:
    return conversation.study.plan.devices if conversation.study.plan else None


def _verdict(conversation: Conversation, plan: Plan, held: MemoryPrediction) -> str:
    """Whether a plan fits; what was seen to run did, whatever is predicted."""
    seen = [fact.value for fact in conversation.evidence if fact.claim is Claim.HBM_BYTES and fact.plan == plan]
    if held.fits or not seen or seen[-1] is None:
        return held.verdict
    return f"ran with {format_bytes(seen[-1])}, as you stated, though the model says that it {held.verdict}"


def _part_first(question: Question, name: str, held: MemoryPrediction) -> list[str]:
    """The part that is asked for, by name or as the largest."""
    known = [part for part in held.parts if part.size_bytes > 0]
    asked = [part for part in known if (words := _PARTS.get(part.name)) and words.search(question.text)]
    if not asked and LARGEST_PART.search(question.text):
        asked = sorted(known, key=lambda part: -part.size_bytes)[:1]
    if not asked or len(asked) == len(known):
        return []
    whole = held.total.value
    said = [f"{one.name} {format_bytes(one.size_bytes)}, {format_percent(one.size_bytes / whole, 0)}" for one in asked]
    within = "; the logits are a part of the temporaries" if _LOGITS.search(question.text) else ""
    return [f"{name}: {'; '.join(said)} of its HBM on the fullest chip ({held.total.provenance.value}{within})."]


def _of_what_fails(conversation: Conversation, question: Question) -> Question:
    """ "Why does it run out of memory?" is asked of what runs, if that is what is predicted not to fit."""
    pointed = all(mention.way == "pointing" for mention in question.refs.mentions)
    now = conversation.study.plan
    if not pointed or now is None or not _DIES.search(question.text):
        return question
    held = prediction_of(conversation, now).memory
    return replace(question, plans=()) if held is not None and not held.fits else question


def _odds(held: MemoryPrediction) -> str:
    return "" if held.probability_fits is None else f"; P(fits) {format_percent(held.probability_fits, 0)}"


def _reserved(conversation: Conversation, usable: float) -> str:
    """What of a chip's HBM no program can have, where that is known."""
    hardware = conversation.study.slice
    if hardware is None:
        return ""
    whole = hardware.chip.hbm_bytes / hardware.chip.devices
    return f"; {format_bytes(whole)} on the data sheet, less what the runtime keeps" if usable < whole else ""
