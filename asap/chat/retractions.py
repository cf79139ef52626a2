"""What a line takes back: the last fact, one by its plan, its number or its metric."""

import re

from asap.chat.conversation import Conversation
from asap.chat.evidence import Claim, StatedFact
from asap.chat.understanding.markers import pretends
from asap.chat.understanding.quantities import amounts
from asap.chat.understanding.question import masked
from asap.chat.understanding.questions import is_question
from asap.chat.understanding.references import references
from asap.chat.understanding.retrieval import retrieval
from asap.chat.understanding.topics import Topic

_METRICS: tuple[tuple[str, set[Claim]], ...] = (
    (r"\bconstraint|\brestriction|\blimit\b", {Claim.CONSTRAINT}),
    (r"\bmfu\b", {Claim.MFU}),
    (r"\bthroughput|\btokens", {Claim.THROUGHPUT}),
    (r"\bhbm\b", {Claim.HBM_SHARE, Claim.HBM_BYTES}),
    (r"\bbatch\b", {Claim.BATCH, Claim.CONSTRAINT}),
    (r"\bsequence\b|\bcontext\b", {Claim.SEQUENCE}),
    (r"\boom\b|\bout of memory\b", {Claim.OUT_OF_MEMORY}),
    (r"\bcrash", {Claim.FAILED}),
)


def retracted_by(text: str, conversation: Conversation) -> tuple[StatedFact, ...] | None:
    """The facts that a line takes back, empty if none is on record; ``None`` if the line takes nothing back."""
    if pretends(text) or is_question(text):
        return None
    found = amounts(text)
    refs = references(text, conversation.order, conversation.focus, conversation.study.plan, found)
    best = retrieval().matches(masked(text, refs, found))[0]
    if best.topic is not Topic.RETRACTION or best.score < retrieval().threshold:
        return None
    if any(not a.before and a.unit in {"s", "%"} for a in found):
        return None
    known = [fact for fact in reversed(conversation.evidence) if not fact.compiled]
    for words, claims in _METRICS:
        if re.search(words, text, re.I) and (of_metric := [f for f in known if f.claim in claims]):
            return (of_metric[0],)
    named = [m.plan for m in refs.mentions if m.way in {"written", "rank", "baseline"}]
    if named and (of_plan := [fact for fact in known if fact.plan in named]):
        return (of_plan[0],)
    if re.search(r"\b(?:all|everything)\b", text, re.I):
        return tuple(known)
    return tuple(known[:1])
