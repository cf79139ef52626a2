"""What a line takes back: the last fact, one by its plan, its number or its metric."""

import re

from asap.chat.evidence.claims import Claim
from asap.chat.evidence.fact import StatedFact
from asap.chat.understanding.question import Question
from asap.chat.understanding.scene import Scene
from asap.chat.understanding.topics.topics import Topic
from asap.chat.understanding.words.questions import is_question

_METRICS: tuple[tuple[str, set[Claim]], ...] = (
    (r"\bconstraint|\brestriction|\blimit\b", {Claim.CONSTRAINT}),
    (r"\bmfu\b", {Claim.MFU}),
    (r"\bthroughput|\btokens", {Claim.THROUGHPUT}),
    (r"\bhbm\b", {Claim.HBM_SHARE, Claim.HBM_BYTES}),
    (r"\bbatch\b", {Claim.BATCH, Claim.CONSTRAINT}),
    (r"\bsequence\b|\bcontext\b", {Claim.SEQUENCE}),
    (r"\boom\b|\bout of memory\b|\bcrash", {Claim.OUT_OF_MEMORY, Claim.FAILED}),
)
_CORRECTS = re.compile(r"\b(?:it|that) (?:was|is)\s+\d", re.I)
"""Says the right figure, and so takes none back without another: "scratch that, it was 66"."""


def retracted_by(question: Question, scene: Scene) -> tuple[StatedFact, ...] | None:
    """The facts that a line takes back, empty if what it names is not on record; ``None`` if it takes nothing back."""
    text = question.text
    if question.topic is not Topic.RETRACTION or is_question(text):
        return None
    if _CORRECTS.search(text) or any(not amount.before and amount.unit in {"s", "%"} for amount in question.amounts):
        return None
    known = [fact for fact in reversed(scene.known) if not fact.compiled]
    named = [m.plan for m in question.refs.mentions if m.way in {"written", "rank", "baseline"}]
    metric = next((claims for words, claims in _METRICS if re.search(words, text, re.I)), None)
    if metric is not None:
        return tuple(fact for fact in known if fact.claim in metric)[:1]
    if named:
        return tuple(fact for fact in known if fact.plan in named)[:1]
    if re.search(r"\b(?:all|everything)\b", text, re.I):
        return tuple(known)
    return tuple(known[:1])
