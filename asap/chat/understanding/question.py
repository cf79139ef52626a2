"""A question as it is understood: its topic, the plans and the change it is about, its numbers.

What a question leaves out is taken from the one before: "and for proposal 3?", "per chip?", "same with 32 chips".
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from pydantic import BaseModel, ConfigDict

from asap.chat.understanding.changes import Change, change_in
from asap.chat.understanding.operations import operations_named
from asap.chat.understanding.quantities import Amount, amounts
from asap.chat.understanding.references import References, blanked, references
from asap.chat.understanding.retrieval import retrieval
from asap.chat.understanding.topics import Topic
from asap.plans import Plan
from asap.plans.prose import plan_spans
from asap.study.study import Study

BARE_NUMBER_TOPICS = {
    Topic.COMPARE, Topic.EXPLAIN, Topic.MAXTEXT, Topic.SURE, Topic.WHY_NOT, Topic.OPINION, Topic.FALSE_CLAIM,
    Topic.MEMORY, Topic.THROUGHPUT, Topic.CHANGE_OF_MIND,
}  # fmt: skip
"""Topics in which a lone digit is the number of a proposal."""

SHORT_MESSAGE_WORDS = 3
_INHERITED = {
    Topic.MEMORY, Topic.THROUGHPUT, Topic.MAXTEXT, Topic.SURE, Topic.EXPLAIN, Topic.WHAT_IF, Topic.WHY_NOT,
    Topic.OPERATIONS, Topic.ROOFLINE, Topic.COLLECTIVES, Topic.COMPARE,
}  # fmt: skip
_FILLER = re.compile(
    r"a|about|again|also|an|and|as|at|breakdown|but|by|do|first|for|how|i|if|in|instead|is|it|just|now|number|of|ok"
    r"|okay|on|one|only|option|or|plan|please|proposals?|runner|same|second|so|take|that|the|then|third|to|too|up|use"
    r"|versus|was|we|well|were|what|with"
)
"""Words of a question that say nothing of its topic."""
_TRAINING = 1e9
"""Tokens from which a number of them is a training run, and no sequence."""
_PER_CHIP = re.compile(r"\bper (?:chip|device|core|gpu|tpu)\b|/\s?(?:chip|device|core)\b", re.I)
_HYPOTHETICAL = re.compile(
    r"\b(?:what if|what happens|if|suppose|imagine|assum\w+|would|could|might|how about|what "
    r"about|switch\w*|mov\w+|instead|swap\w*"
    r"|go(?:ing)? (?:to|from|up|down)|scal\w+|with|on|train|use|double\w*|grow\w*|drop\w*|take"
    r"|quanti\w+|rematerial\w+|split)\b",
    re.I,
)
_SCENARIO = re.compile(r"\b(?:that|then|it|still|in that case|there)\b", re.I)


class Context(BaseModel):
    """What was spoken of last, on record with each reply."""

    model_config = ConfigDict(frozen=True)

    topic: Topic | None = None
    plans: tuple[Plan, ...] = ()
    change: Change | None = None
    tokens: float | None = None
    operations: tuple[str, ...] = ()


@dataclass(frozen=True)
class Question:
    """One question, resolved."""

    text: str
    topic: Topic
    score: float
    refs: References
    change: Change
    plans: tuple[Plan, ...]
    operations: tuple[str, ...]
    amounts: tuple[Amount, ...]
    unused: tuple[Amount, ...]
    context: Context
    ellipsis: bool

    @property
    def hypothetical(self) -> bool:
        """Whether it asks what would be."""
        return _HYPOTHETICAL.search(self.text) is not None or self.ellipsis

    @property
    def of_scenario(self) -> Change | None:
        """The change spoken of before, where this question goes on with it: "does that still fit?"."""
        goes_on = self.change.empty and not self.refs.mentions and _SCENARIO.search(self.text)
        return self.context.change if goes_on else None

    @property
    def tokens(self) -> float | None:
        """Tokens to train on, as asked now or before."""
        named = next((a.value for a in self.amounts if a.unit == "tokens"), None)
        return named or self.context.tokens

    @property
    def dollars(self) -> float | None:
        """A price of a chip hour."""
        return next((a.value for a in self.amounts if a.unit == "$"), None)


def read_question(text: str, study: Study, order: Sequence[Plan], focus: Plan | None, context: Context) -> Question:
    """Understand a question; raises PlanError where a plan in it is malformed."""
    spans = [(start, end) for start, end, _ in plan_spans(text)]
    rest = blanked(text, spans)
    found = amounts(rest)
    named = operations_named(rest, study)
    change, used = change_in(_without(rest, named), [a for a in found if not _inside(a, rest, named)], context.change)
    change = _real(change, study)
    first = references(text, order, focus, study.plan, found, bare=False)
    lone = [a for a in found if not a.unit and a not in used and a.value in range(1, 10)]
    matches = retrieval().matches(masked(text, first, found, named, lone))
    topic, score = matches[0].topic, matches[0].score
    if score < retrieval().threshold:
        topic = Topic.UNKNOWN
    if any(a.unit == "$" or (a.unit == "tokens" and a.value >= _TRAINING) for a in found):
        topic = Topic.THROUGHPUT
    if context.topic not in _INHERITED and _says_nothing(rest, found, first, change):
        topic = Topic.UNKNOWN
    bare = topic in BARE_NUMBER_TOPICS or len(text.split()) <= SHORT_MESSAGE_WORDS
    refs = references(text, order, focus, study.plan, [*found, *_counted(used)], bare and change.empty)
    if refs.settings is not None:
        change = _with_settings(change, refs.settings)
    ellipsis = _is_ellipsis(text, refs, found, context)
    if ellipsis and context.topic is not None:
        topic = Topic.WHAT_IF if not change.empty else context.topic
    plans = tuple(plan for plan in refs.plans if plan.devices > 1)
    taken = {(a.start, a.end) for a in used}
    ranks = {m.start for m in refs.mentions if m.way == "rank"}
    unused = tuple(
        a for a in found
        if (a.start, a.end) not in taken and a.start not in ranks and not a.before and not _inside(a, rest, named)
    )  # fmt: skip
    return Question(
        text, topic, score, refs, change, plans, named or (context.operations if ellipsis and not plans else ()),
        tuple(found), unused, context, ellipsis,
    )  # fmt: skip


def masked(
    text: str, refs: References, found: Sequence[Amount], named: Sequence[str] = (), lone: Sequence[Amount] = ()
) -> str:
    """A message with placeholders for what it names, as the examples have them; ``lone`` digits may be ranks."""
    spans = [(start, end, "zplan") for start, end, _ in plan_spans(text)]
    for pattern, mask in _MASKS:
        spans += [(m.start(), m.end(), mask) for m in pattern.finditer(text)]
    for name in named:
        spans += [(m.start(), m.end(), "zop") for m in re.finditer(_loose(name), text, re.I)]
    spans += [(a.start, a.end, "zrank") for a in lone]
    digits = [(a, re.match(r"[\d.,]+", text[a.start :])) for a in found]
    spans += [(a.start, a.start + match.end(), "znum") for a, match in digits if match]
    for start, end, mask in sorted(_separate(spans), reverse=True):
        text = f"{text[:start]} {mask} {text[end:]}"
    return text


_MASKS = (
    (
        re.compile(
            r"\b(?:the\s+)?(?:proposals?|options?|candidates?|numbers?|no\.)\s*#?\s*\d{1,2}\b|#\d{1,2}\b"
            r"|\b(?:the\s+)?(?:proposal|option|number)\s+(?:one|two|three)\b|\b(?:plan\s+\d{1,2}|runner-up)\b"
            r"|\bthe\s+(?:first|second|third)(?:\s+(?:one|proposal|option|plan))?\b"
            r"|\b(?:first|second|third) (?:one|proposal)\b",
            re.I,
        ),
        "zrank",
    ),
    (re.compile(r"\b(?:v\d[a-z]{0,2}-\d+|[ah]\d{3}-\d+)\b", re.I), "zhw"),
)


def _separate(spans: list[tuple[int, int, str]]) -> list[tuple[int, int, str]]:
    kept: list[tuple[int, int, str]] = []
    for start, end, mask in spans:
        if end > start and all(end <= s or start >= e for s, e, _ in kept):
            kept.append((start, end, mask))
    return kept


def _loose(name: str) -> str:
    return r"[-_ .]".join(re.escape(part) for part in re.split(r"[-_ .]+", name) if part)


def _inside(amount: Amount, text: str, named: Sequence[str]) -> bool:
    """Whether a number is part of an operation's name: all-reduce.70."""
    return any(m.start() <= amount.start < m.end() for n in named for m in re.finditer(_loose(n), text, re.I))


def _without(text: str, named: Sequence[str]) -> str:
    for name in named:
        text = re.sub(_loose(name), lambda m: " " * len(m.group()), text, flags=re.I)
    return text


def _real(change: Change, study: Study) -> Change:
    """The change without what is so already: "all 16 chips" of 16."""
    chips = change.get("chips")
    if chips is None or study.slice is None or chips.of(study.slice.devices) != study.slice.devices or change.hardware:
        return change
    return change.model_copy(update={"counts": tuple(pair for pair in change.counts if pair[0] != "chips")})


def _counted(used: Sequence[Amount]) -> list[Amount]:
    """Amounts of a change, which are no ranks."""
    return [Amount(a.value, a.unit or "count", a.start, a.end, a.text) for a in used]


def _with_settings(change: Change, settings: Plan) -> Change:
    from asap.chat.understanding.changes import To

    counts = dict(change.counts)
    if settings.microbatches is not None:
        counts["microbatches"] = To(value=settings.microbatches)
    fields: dict[str, object] = {"counts": tuple(sorted(counts.items()))}
    if settings.remat is not None:
        fields["remat"] = settings.remat
    return change.model_copy(update=fields)


def _says_nothing(text: str, found: Sequence[Amount], refs: References, change: Change) -> bool:
    """Whether a message is a lone number or a filler word."""
    words = re.findall(r"[^\W\d_]+", text.lower())
    short = len(words) <= 1 and all(_FILLER.fullmatch(word) for word in words)
    return short and not refs.mentions and refs.wish is None and change.empty and all(not a.unit for a in found)


def _is_ellipsis(text: str, refs: References, found: Sequence[Amount], context: Context) -> bool:
    """Whether all that is said beside plans and numbers is filler, so that the topic is the one before."""
    if context.topic not in _INHERITED:
        return False
    rest = blanked(text, [(s, e) for s, e, _ in plan_spans(text)])
    rest = _PER_CHIP.sub(" ", rest) if context.topic is Topic.THROUGHPUT else rest
    rest = blanked(rest, [(a.start, a.end) for a in found])
    if context.topic is Topic.WHAT_IF:
        rest = re.sub(
            r"\b(?:chips?|slices?|sequences?|layers|experts|batch|context|fp8|int8|bf16|offload|full|minimal)\b",
            " ",
            rest,
            flags=re.I,
        )
    words = re.findall(r"[a-z]+", rest.lower())
    return len(words) <= 10 and all(_FILLER.fullmatch(word) for word in words)
