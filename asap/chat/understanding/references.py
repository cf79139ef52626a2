"""Which plans a sentence speaks of: written out, by rank, by pointing, by a wish for an axis, or what runs now."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, get_args

from asap.chat.understanding.quantities import Amount
from asap.core.errors import PlanError
from asap.plans import Plan
from asap.plans.axes import WORDS, Axis
from asap.plans.prose import plan_spans

Way = Literal["written", "rank", "pointing", "baseline", "all"]
_RANKS = {
    "first": 1, "1st": 1, "one": 1, "top pick": 1, "top": 1, "winner": 1, "best": 1, "runner-up": 2, "second": 2,
    "2nd": 2, "two": 2, "second-best": 2, "third": 3, "3rd": 3, "three": 3, "last": 3,
}  # fmt: skip
_NOUN = r"(?:proposals?|options?|plans?|numbers?|candidates?|suggestions?|picks?|no\.?|nr\.?)"
_NUMBERED = re.compile(rf"(?:\b{_NOUN}\s*#?\s*|#)(\d{{1,2}})(?![\d.,]*\d|\w|\s*%)", re.I)
_FOLLOWING = re.compile(r"\s*(?:,|,?\s*and|or|vs\.?|versus|&|with|to)\s*#?(\d{1,2})(?![\d.,]*\d|\w|\s*%)", re.I)
_NAMED = re.compile(
    r"\b(?P<rank>first|1st|second-best|second|2nd|third|3rd)(?=\s+(?:one|proposal|option|plan|candidate|suggestion)\b)"
    r"|\bthe\s+(?P<the>first|second|2nd|third|3rd)\b(?!\s+(?:step|slice|time|run|layer))"
    r"|\b(?P<place>runner-up|top pick)\b|\b(?:proposal|option|number|plan)\s+(?P<spelled>one|two|three)\b",
    re.I,
)
_BARE = re.compile(r"(?<![\w=.:,$-])([1-9])(?![.,]?\d|\w|\s*%|-)", re.I)
_OTHERS = re.compile(r"\bthe\s+(?:other|remaining)\s*(?:two|ones?|proposals?|options?|plans?)?", re.I)
_ALL = re.compile(
    r"\b(?:all (?:of )?(?:the )?(?:three|3|proposals|them|plans)|the three|each of (?:them|the)|each proposal)\b", re.I
)
_POINTING = re.compile(
    r"\b(?:that|this)\s+(?:one|plan|proposal|option|candidate|config\w*|sharding|mesh|layout|setup)\b|\b(?:it|its)\b"
    r"|\b(?:that|this)\s*(?:$|[?.!,:]|\s(?=(?:ran|runs|oom|crash|fail|was|took|takes|measur|went|died|did|fit|gave|hung"
    r"|never|hit|is|one|into|to)\w*))",
    re.I,
)
_NOW = re.compile(
    r"\b(?:incumbent|base-?line|status quo|what (?:we|i) (?:run|have|use)|what (?:is )?run(?:s|ning)?(?: now| today)?"
    r"|(?:current|present|running|existing|today'?s) (?:plan|run|one|sharding|mesh|setup|config\w*|layout|step|job)"
    r"|(?:our|my) (?:(?:current|present|existing|own|training) )*(?:plan|run|setup|job|config\w*"
    r"|mesh|sharding|layout))\b",
    re.I,
)
_AXIS = r"(?P<axis>tensor|model|data|sequence|context|experts?|pipeline|replica\w*|fsdp|tp|dp|cp|pp|ep|pipelining)"
_MUCH = (
    r"(?P<much>more|higher|bigger|increas\w+|pure|plain|only|just|full|use|using|do|try|add\w*|less|lower|fewer|smaller"
    r"|split\w*|shard\w*|without|no|not|drop(?:ping)?|remov\w+|reduc\w+|get rid of)"
)
_WISH = re.compile(
    rf"\b{_MUCH}\s+(?:of\s+|any\s+|the\s+|use\s+|using\s+|more\s+)*{_AXIS}(?:[\s-]+(?:parallel\w*|stages?|axis|sharding|shards))?\b"
    rf"|\b{_AXIS.replace('axis>', 'named>')}(?:\s+|-)(?:parallel\w*|stages?|axis|sharding)\b"
    r"|\b(?P<alone>pipelining)\b"
    rf"|\b{_AXIS.replace('axis>', 'wide>')}\s+(?:parallel\w*\s+)?(?:over|across|on)\s+(?:all|every)",
    re.I,
)
_WHOLLY = re.compile(r"\b(?:pure|plain|only|just|full)\b", re.I)
_NONE = re.compile(r"\b(?:without|no|drop\w*|remov\w+|get rid of)\b", re.I)
_LESS = re.compile(r"\b(?:less|lower|fewer|smaller|reduc\w+)\b", re.I)


@dataclass(frozen=True)
class Mention:
    """A plan that a text names: where, and how. ``partial`` plans name some of their degrees only."""

    plan: Plan
    start: int
    end: int
    way: Way
    rank: int | None = None


@dataclass(frozen=True)
class Wish:
    """An axis that is named without a degree, and how much of it is asked for."""

    axis: Axis
    sense: Literal["more", "less", "only", "none"]


@dataclass(frozen=True)
class References:
    """All that a text refers to; ``missing`` are ranks that no proposal has."""

    mentions: tuple[Mention, ...]
    wish: Wish | None
    missing: tuple[int, ...] = ()
    settings: Plan | None = None

    @property
    def plans(self) -> list[Plan]:
        """Plans in the order of their mention, each once."""
        return list(dict.fromkeys(mention.plan for mention in self.mentions))

    @property
    def written(self) -> list[Plan]:
        """Plans that are written out."""
        return [mention.plan for mention in self.mentions if mention.way == "written"]


def references(
    text: str,
    order: Sequence[Plan],
    focus: Plan | None,
    incumbent: Plan | None,
    amounts: Sequence[Amount] = (),
    bare: bool = False,
) -> References:
    """What a text refers to.

    Args:
        text: one sentence.
        order: the proposals, best first.
        focus: the plan that was spoken of last.
        incumbent: what runs now.
        amounts: numbers of the text that are measurements or counts of something: no ranks.
        bare: whether a lone digit is a rank, as in "compare 1 and 3".

    Raises:
        PlanError: a plan is malformed.
    """
    spans = plan_spans(text)
    settings = next((plan for _, _, plan in spans if plan.devices == 1 and plan != Plan()), None)
    found = [Mention(plan, start, end, "written") for start, end, plan in spans if plan.devices > 1]
    rest = blanked(text, [(start, end) for start, end, _ in spans])
    ranks = _ranks(rest, [a for a in amounts if a.unit], bare)
    found += [Mention(order[n - 1], at, at + 1, "rank", n) for at, n in ranks if 0 < n <= len(order)]
    missing = tuple(dict.fromkeys(n for _, n in ranks if n == 0 or n > len(order)))
    if _ALL.search(rest) or (_OTHERS.search(rest) and order):
        first = 0 if _ALL.search(rest) else 1
        found += [Mention(plan, len(text), len(text), "all", n) for n, plan in enumerate(order[first:], first + 1)]
    if incumbent is not None and (now := _NOW.search(rest)):
        found.append(Mention(incumbent, now.start(), now.end(), "baseline"))
    if not found and not missing and focus is not None and (pointing := _POINTING.search(rest)):
        found.append(Mention(focus, pointing.start(), pointing.end(), "pointing"))
    return References(tuple(sorted(found, key=lambda m: m.start)), wish_in(rest), missing, settings)


def speaks_of_baseline(text: str) -> bool:
    """Whether what runs now is named."""
    return _NOW.search(text) is not None


def wish_in(text: str) -> Wish | None:
    """An axis without a degree, and how much of it is asked for."""
    match = _WISH.search(text)
    if match is None:
        return None
    name = (match["axis"] or match["named"] or match["alone"] or match["wide"]).lower()
    plain_data = name in {"dp", "data"} and bool(re.search(r"\bplain\b|no sharding", text, re.I))
    name = (
        "stage"
        if name == "pipelining"
        else "replica"
        if name.startswith("replica") or plain_data
        else WORDS[name.removesuffix("s")]
    )
    much = match["much"] or ""
    if match["wide"] or _WHOLLY.search(much):
        sense = "only"
    else:
        sense = "none" if _NONE.search(much) else "less" if _LESS.search(much) else "more"
    axes: tuple[Axis, ...] = get_args(Axis)
    return next(Wish(axis, sense) for axis in axes if axis == name)


def blanked(text: str, spans: Sequence[tuple[int, int]]) -> str:
    """The text with some spans replaced by spaces."""
    for start, end in spans:
        text = text[:start] + " " * (end - start) + text[end:]
    return text


def filled(plan: Plan, devices: int | None) -> Plan:
    """A plan of which some degrees were named, with FSDP over the rest of the devices."""
    named = plan.ici.devices
    if devices is None or plan.ici.data > 1 or plan.ici.replica > 1 or named >= devices or devices % named:
        return plan
    return plan.with_ici(data=devices // named)


def _ranks(text: str, measured: Sequence[Amount], bare: bool) -> list[tuple[int, int]]:
    text = blanked(text, [(amount.start, amount.end) for amount in measured])
    found: list[tuple[int, int]] = []
    for match in _NUMBERED.finditer(text):
        found.append((match.start(1), int(match[1])))
        position = match.end()
        while following := _FOLLOWING.match(text, position):
            found.append((following.start(1), int(following[1])))
            position = following.end()
    for match in _NAMED.finditer(text):
        word = next(filter(None, match.groups())).lower()
        found.append((match.start(), _RANKS[word]))
    if bare:
        found += [(match.start(1), int(match[1])) for match in _BARE.finditer(text)]
    return list(dict(sorted(found)).items())


def malformed(text: str) -> str | None:
    """Why a plan in a text cannot be read; ``None`` if all can."""
    try:
        plan_spans(text)
    except PlanError as error:
        return str(error)
    return None
