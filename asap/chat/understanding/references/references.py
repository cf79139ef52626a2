"""Which plans a sentence speaks of: written out, by rank, by pointing, by a wish for an axis, or what runs now."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from asap.chat.understanding.quantities.amounts import Amount
from asap.chat.understanding.quantities.blanked import blanked
from asap.chat.understanding.references.ranks import Lone, ranks
from asap.chat.understanding.references.wishes import Wish, wish_in
from asap.plans import Plan
from asap.plans.prose import plan_spans

Way = Literal["written", "rank", "pointing", "baseline", "all"]
_OTHERS = re.compile(
    r"\bthe\s+(?:others\b|(?:other|remaining)\s*(?:(?:two|ones?|proposals?|options?|plans?)\b|(?=[?.!,;]|$)))", re.I
)
_ALL = re.compile(
    r"\b(?:all (?:of )?(?:the )?(?:three|3|proposals|them|plans)|the three|each of (?:them|the)|each proposal)\b", re.I
)
_POINTING = re.compile(
    r"\b(?:that|this)\s+(?:one|plan|proposal|option|candidate|config\w*|sharding|mesh|layout|setup)\b|\b(?:it|its)\b(?!\s+the\b)"
    r"|\b(?:that|this)\s*(?:$|[?.!,:]|\s(?=(?:ran|runs|oom|crash|fail|was|took|takes|measur|went|died|did|fit|gave|hung"
    r"|never|hit|is|one|in (?:mfu|tok|tps|sec|ms|dollar|day|hour|gi?b)|into|to|give|bring|cost|save|need|use)\w*))",
    re.I,
)
_IDIOMS = re.compile(
    r"\b(?:done|over|live|ok(?:ay)?|fine|happy|stuck) with (?:it|that)\b|\bcall it (?:a day|done)\b|\bget on with it\b"
    r"|\bleave it (?:at that|there)\b|\bthat'?s it\b|\bis that it\b",
    re.I,
)
"""Phrases whose "it" stands for no plan."""
_RELATIVE = re.compile(
    r"\b(?!(?:and|but|so|if|does|do|did|will|would|could|can|has|had|have|is|was|because|since|when|then|think|say|said|says"
    r"|ok|yes|no|now|after|before|though|although|while|as|once|until|unless|or|not)\b)[a-z]+\s+$",
    re.I,
)
"""A word after which "that" begins a clause on it: "the batch that fits"."""
_OF_THOSE = re.compile(
    r"\b(?:the\s+)?(?:(?P<place>first|second|third|last)\s+(?:one\s+)?of\s+(?:those|these|them|the (?:two|three|both))"
    r"|(?P<alone>former|latter)(?:\s+(?:one|plan|proposal))?)\b",
    re.I,
)
"""One of the plans that were spoken of."""
_MADE = re.compile(r"\b(?:mak(?:e|es|ing)|made|get|gets|getting|let|lets)\s+$", re.I)
"""Words before an "it" that is the run: "what makes it fit"."""
_NOW = re.compile(
    r"\b(?:incumbent|base-?line|status quo|what (?:we|i) (?:run|have|use)|what (?:is )?run(?:s|ning)?(?: now| today)?"
    r"|(?:current|present|running|existing|today'?s) (?:plan|run|one|sharding|mesh|setup|config\w*|layout|step|job)"
    r"|without any of (?:this|that|it|these|those|them)\b|(?:our|my) (?:(?:current|present|existing|own"
    r"|training) )*(?:plan|run|setup|job|config\w*"
    r"|mesh|sharding|layout))\b",
    re.I,
)

_AGAINST_NOW = re.compile(
    r"\b(?:vs\.?|versus|against|compared (?:to|with)|than)\s+(?:the )?(?:now|today|current\w*|ours)\b"
    r"|\b(?:now|today)\s+(?:vs\.?|versus|against|compared (?:to|with))(?!\w)",
    re.I,
)
_AGAINST = re.compile(
    r"\b(?:it|that|this)\b[^.?!]*\b(?:beats?|outperforms?|than|versus|vs|compared (?:to|with)|against)\b", re.I
)
_BARE_COMPARATIVE = re.compile(
    r"^\W*(?:(?:so|and|but|ok|is|would|be)\W+)*(?:any |much )?(?:faster|slower|better|worse|cheaper|smaller"
    r"|bigger|more|less|longer"
    r"|shorter)\b",
    re.I,
)
"""A comparison without a subject: "faster than now?"."""
_OWN_FIGURE = re.compile(r"\b(?:our|my) (?:mfu|throughput|step(?: time)?|hbm|memory|utili[sz]ation|tokens)\b", re.I)


@dataclass(frozen=True)
class Mention:
    """A plan that a text names: where, and how. ``partial`` plans name some of their degrees only."""

    plan: Plan
    start: int
    end: int
    way: Way
    rank: int | None = None


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
    def ranked(self) -> list[Plan]:
        """Plans that are named by their number."""
        return [mention.plan for mention in self.mentions if mention.way == "rank"]

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
    lone: Lone = "none",
    spoken: Sequence[Plan] = (),
) -> References:
    """What a text refers to.

    Args:
        text: one sentence.
        order: the proposals, best first.
        focus: the plan that was spoken of last.
        incumbent: what runs now.
        amounts: numbers of the text that are measurements or counts of something: no ranks.
        lone: which lone digits are ranks.
        spoken: the plans that were spoken of before, in their order: "the first of those", "the latter".

    Raises:
        PlanError: a plan is malformed.
    """
    spans = plan_spans(text)
    settings = next((plan for _, _, plan in spans if plan.devices == 1 and plan != Plan()), None)
    found = [Mention(plan, start, end, "written") for start, end, plan in spans if plan.devices > 1]
    rest = blanked(text, [(start, end) for start, end, _ in spans])
    if len(spoken) > 1:
        picked = [(match, spoken[_place(match, len(spoken))]) for match in _OF_THOSE.finditer(rest)]
        found += [Mention(plan, match.start(), match.end(), "pointing") for match, plan in picked]
        rest = blanked(rest, [match.span() for match, _ in picked])
    numbered = ranks(rest, [a for a in amounts if a.unit], lone)
    found += [Mention(order[n - 1], at, at + 1, "rank", n) for at, n in numbered if 0 < n <= len(order)]
    missing = tuple(dict.fromkeys(n for _, n in numbered if n == 0 or n > len(order)))
    if _ALL.search(rest) or (_OTHERS.search(rest) and order):
        known = [mention.plan for mention in found] or [focus if focus in order else order[0]]
        spoken_of = [] if _ALL.search(rest) else known
        others = [(n, plan) for n, plan in enumerate(order, 1) if plan not in spoken_of]
        found += [Mention(plan, len(text), len(text), "all", n) for n, plan in others]
    if incumbent is not None and (now := _NOW.search(rest) or _AGAINST_NOW.search(rest)):
        found.append(Mention(incumbent, now.start(), now.end(), "baseline"))
    if not found and not missing and incumbent is not None and (own := _OWN_FIGURE.search(rest)):
        found.append(Mention(incumbent, own.start(), own.end(), "baseline"))
    if not found and not missing and focus is not None and (pointing := _pointing(rest)):
        found.append(Mention(focus, pointing.start(), pointing.end(), "pointing"))
    if (
        len(found) == 1
        and focus not in (None, found[0].plan)
        and (against := _AGAINST.search(rest) or _BARE_COMPARATIVE.search(rest))
    ):
        found.append(Mention(focus, against.start(), against.start(), "pointing"))
    only_settings = not any(plan.devices > 1 for _, _, plan in spans)
    wish = wish_in(text if only_settings else rest)
    return References(tuple(sorted(found, key=lambda m: m.start)), wish, missing, settings)


def _place(match: re.Match[str], count: int) -> int:
    """Which of the plans that were spoken of is meant."""
    word = (match["place"] or match["alone"]).lower()
    place = {"first": 0, "former": 0, "second": 1, "third": 2}.get(word, count - 1)
    return min(place, count - 1)


def _pointing(text: str) -> re.Match[str] | None:
    """The first word that stands for the plan which was spoken of last."""
    text = blanked(text, [match.span() for match in _IDIOMS.finditer(text)])
    for found in _POINTING.finditer(text):
        before, word = text[: found.start()], found.group().strip().lower()
        if not (_MADE.search(before) or (word == "that" and _RELATIVE.search(before) and found.end() != len(text))):
            return found
    return None


def speaks_of_baseline(text: str) -> bool:
    """Whether what runs now is named."""
    return _NOW.search(text) is not None
