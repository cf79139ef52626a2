"""What a line takes back: the last fact, one by its plan, its number, its metric or what it limits."""

import re
from collections.abc import Callable

from asap.chat.understanding.quantities.amounts import Amount
from asap.chat.understanding.question import Question
from asap.chat.understanding.references.meant import plan_meant
from asap.chat.understanding.scene import Scene
from asap.chat.understanding.statements.discarded import discarded_at_once, discarded_by
from asap.chat.understanding.statements.limits.constraints import orders_away
from asap.chat.understanding.topics.topics import Topic
from asap.chat.understanding.words.line_before.going_back import undoes
from asap.chat.understanding.words.questions import is_question
from asap.evidence.claims import Claim
from asap.evidence.fact import HBM, MESH, MICRO_BATCH, NO_OFFLOAD, StatedFact
from asap.plans.axes import WORDS

_LIMIT = r"(?:limit\w*|cap|ceiling|constraints?|restrictions?|requirement|condition|rule|budget|wish)"
_LIFTS = re.compile(
    r"^\W*(?:(?:ok(?:ay)?|and|so|well|no|please|actually|never ?mind|now|then|let'?s|you can|just|sorry)\W+)*"
    r"(?:drop|forget(?: about)?|scrap|lift|remove|ignore|cancel|withdraw|revoke|relax|scratch|delete|take back|undo"
    r"|never ?mind|loosen|get rid of)\s+"
    rf"(?:(?:the|that|this|my|our|its|about)\s+)+(?:[\w=<>-]+\s+){{0,3}}?(?:{_LIMIT}|thing|bit|part|stuff)\b"
    r"(?:\s+(?:again|please|now|thanks|then))*\W*$",
    re.I,
)
"""Takes a limit back: "drop that limit", "forget the tp thing"."""
_ALLOWED_AGAIN = re.compile(
    r"\b(?:ok(?:ay)?|fine|allowed|possible|available|supported|works?|usable|free|can (?:change|use|have|move|touch))\b"
    r"[^.?!]*\b(?:again|after all)\b|\bafter all\b[^.?!]*\bcan\b",
    re.I,
)
"""Says that what was ruled out is not: "offload is fine after all"."""
_NAMED_LIMIT = re.compile(rf"\b{_LIMIT}\b", re.I)
_SHORT = {"dp", "fsdp", "cp", "tp", "tensor", "ep", "pp", "pipeline"}
"""Names of axes that are words of nothing else."""
_Names = Callable[[StatedFact], bool]


def _claimed(*claims: Claim) -> _Names:
    return lambda fact: fact.claim in claims


def _limits(*about: str) -> _Names:
    return lambda fact: fact.claim is Claim.CONSTRAINT and fact.about in about


_SUBJECTS: tuple[tuple[str, tuple[_Names, ...]], ...] = (
    (r"\bmfu\b", (_claimed(Claim.MFU),)),
    (r"\bthroughput|\btokens", (_claimed(Claim.THROUGHPUT),)),
    (
        rf"\bhbm\b|\bmemory (?:{_LIMIT}|thing)",
        (_limits(HBM), _claimed(Claim.HBM_SHARE, Claim.HBM_BYTES)),
    ),
    (r"\b(?:micro-?batch\w*|accumulat\w+)", (_limits("microbatches", MICRO_BATCH, "no accumulation"),)),
    (r"\bmbs\b", (_limits(MICRO_BATCH),)),
    (r"\bv-?pp\b|\bvirtual stages?\b|\binterleav\w*", (_limits("no virtual stages"),)),
    (r"\bbatch\b", (_claimed(Claim.BATCH), _limits("batch"))),
    (r"\bsequence\b|\bcontext\b", (_claimed(Claim.SEQUENCE), _limits("sequence"))),
    (r"\boom\b|\bout of memory\b|\bcrash", (_claimed(Claim.OUT_OF_MEMORY, Claim.FAILED),)),
    (r"\boffload\w*", (_limits(NO_OFFLOAD),)),
    (r"\bremat\w*|\brecomput\w*", (_limits("remat", "no recomputation"),)),
    (r"\boptimi[sz]er", (_limits("optimizer"),)),
    (r"\bprecision", (_limits("precision"),)),
    (r"\bmesh|\blayout|\bsharding", (_limits(MESH),)),
    *(
        (rf"\b{word}\b", (_limits(axis, "data" if axis == "replica" else axis),))
        for word, axis in WORDS.items()
        if word in _SHORT
    ),
)  # fmt: skip
"""What a line names, and the facts that this may be; the first of the table that it names counts."""
_CORRECTS = re.compile(r"\b(?:it|that) (?:was|is)\s+\d", re.I)
"""Says the right figure, and so takes none back without another: "scratch that, it was 66"."""


def retracted_by(question: Question, scene: Scene) -> tuple[StatedFact, ...] | None:
    """The facts that a line takes back, empty if what it names is not on record; ``None`` if it takes nothing back."""
    text = question.text
    known = [fact for fact in reversed(scene.known) if not fact.compiled]
    if orders_away(text):
        return None
    if undoes(text):
        return scene.latest or None
    if discarded_at_once(question, scene.latest):
        return scene.latest
    if discarded := discarded_by(question, known):
        return discarded
    if scene.latest and plan_meant(text, scene.opening, scene.study.plan) is not None:
        return None
    lifts = _LIFTS.search(text) is not None
    allows = _ALLOWED_AGAIN.search(text) is not None and bool(_of_subject(text, known, limits=True))
    if is_question(text) or not (question.topic is Topic.RETRACTION or lifts or allows):
        return None
    if _CORRECTS.search(text) or any(not one.before and _is_figure(one) for one in question.amounts):
        return None
    named = [m.plan for m in question.refs.mentions if m.way in {"written", "rank", "baseline"}]
    limited = _NAMED_LIMIT.search(text) is not None or allows
    if (of_subject := _of_subject(text, known, limits=limited)) is not None:
        return of_subject[:1]
    if limited:
        return tuple(fact for fact in known if fact.claim is Claim.CONSTRAINT)[:1]
    if named:
        return tuple(fact for fact in known if fact.plan in named)[:1]
    if re.search(r"\b(?:all|everything)\b", text, re.I):
        return tuple(known)
    return tuple(known[:1])


def _is_figure(amount: Amount) -> bool:
    """Whether it may take the place of a figure on record: "sorry, 9.4"."""
    return amount.unit in {"s", "%"} or (not amount.unit and bool(amount.value % 1))


def _of_subject(text: str, known: list[StatedFact], *, limits: bool) -> tuple[StatedFact, ...] | None:
    """The facts of what a line names, latest first; ``None`` if it names nothing that a fact can be of."""
    names = next((names for words, names in _SUBJECTS if re.search(words, text, re.I)), None)
    if names is None:
        return None
    return tuple(
        fact
        for fact in known
        if any(each(fact) for each in names) and not (limits and fact.claim is not Claim.CONSTRAINT)
    )
