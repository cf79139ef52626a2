"""Counts of a run that a sentence sets: the thing (a noun, or the unit of a number) with the amount nearest to it.

Each amount belongs to one thing at most, so that "sequence length 16384 and batch 64" changes both.
"""

import re
from collections.abc import Sequence
from typing import Literal

from pydantic import BaseModel, ConfigDict

from asap.chat.understanding.quantities.amounts import Amount, thousands
from asap.chat.understanding.quantities.comparatives import direction

Thing = Literal[
    "batch", "per_device_batch", "local_batch", "micro_batch_size", "sequence", "chips", "slices", "layers", "experts",
    "experts_per_token", "d_model", "kv_heads", "vocab", "microbatches",
    "pipeline_repeats", "loss_chunks",
]  # fmt: skip


class To(BaseModel):
    """A new value, or a factor of the value that holds now; ``example`` where only the direction was named."""

    model_config = ConfigDict(frozen=True)

    value: float
    factor: bool = False
    example: bool = False

    def of(self, now: int | None) -> int | None:
        """The new count; ``None`` where a factor has nothing to multiply."""
        if not self.factor:
            return round(self.value)
        return None if now is None else max(round(now * self.value), 1)


_THINGS: tuple[tuple[Thing, str], ...] = (
    (
        "per_device_batch",
        r"per[_ -](?:device|chip|gpu|core)[_ -](?:train[_ -])?batch(?:[_ -]size)?"
        r"|(?:batch|bs)(?: size)?(?: of)?(?: \d+)? ?(?:per|of each|a|an|each|on each|/) ?(?:device|chip|gpu|tpu|core)"
        r"|pdbs?",
    ),
    ("local_batch", r"local[_ -]batch(?:[_ -]size)?|lbs"),
    ("micro_batch_size", r"micro[_ -]?batch[_ -]size|mbs|micro[_ -]?batch(?!es|ing|[_ -](?:count|number|steps))"),
    (
        "microbatches",
        r"micro-?batch(?:es|ing|[_ -](?:count|number|steps))?"
        r"|grad(?:ient)?s?[_ -]acc(?:um\w*)?(?:[_ -]steps)?|accumulat\w+(?: steps)?",
    ),
    (
        "pipeline_repeats",
        r"pipeline[_ ]repeats|virtual (?:pipeline )?stages?|vpp?|interleav\w*(?: pipelin\w*| schedule)?",
    ),
    (
        "loss_chunks",
        r"(?:chunked|tiled) (?:loss|logits|cross[- ]entropy|vocab\w*)|loss[ _-]?(?:chunks?|chunking|tiles?)"
        r"|(?:num[_ ])?(?:vocab\w*|logits?)[ _-]?(?:til(?:es?|ing)|chunks?|chunking)",
    ),
    (
        "batch",
        r"(?:global[_ -])?(?:train[_ -])?batch(?:es)?(?:[_ -]size)?|gbs|bs"
        r"|sequences (?:per|a|each|in a) (?:step|batch)",
    ),
    (
        "sequence",
        r"(?:sequences?|context|seq|train\w*)[_ -]?(?:len\w*|window|size)|(?:sequences?|context|seq)(?! parallel| axis)"
        r"|max_target_length|lengths?"
        r"|\d+ ?k (?:sequences?|context)",
    ),
    (
        "layers",
        r"(?:decoder )?layers?|blocks|num_layers|depth|(?<=deeper )model|(?<=shallower )model"
        r"|model(?= (?:is|was|were|gets) (?:deeper|shallower))",
    ),
    (
        "experts_per_token",
        r"top[-_ ]?k|(?<!your )(?<!the )(?<!my )(?<!me )top[- ]?"
        r"(?=\d+\b(?! (?:proposals|plans|options|ones|operations|ops|picks)))"
        r"|experts per token|active experts",
    ),
    ("experts", r"experts?(?! parallel| shard| axis)"),
    (
        "kv_heads",
        r"(?:kv|key[- /]value)[- _]?(?:heads?|groups?)|gqa(?:[- _]groups?)?|(?:num[- _])?query[- _]groups?",
    ),
    ("vocab", r"vocab\w*(?:[- _]size)?"),
    ("d_model", r"d_model|hidden (?:size|width|dimension)|model (?:width|dimension)|embedding (?:size|width)"),
    ("slices", r"slices?|pods?"),
    (
        "chips",
        r"(?:chips?|devices?|tpus?|gpus?|accelerators?|cores?)(?![ -]hours?)|nodes?|hosts|machines|hardware|cluster"
        r"|of them|scal(?:e|es|ed|ing)(?: (?:up|out|down|well|ok|fine|linearly|nicely))* (?:to|past|beyond)(?=\s+\d)"
        r"|(?:fits?|runs?|works?|trains?|goes)(?: (?:it|this|that|well|fine|ok|at all))* on"
        r"(?=\s+(?:(?:only|just) )?\d{2,})",
    ),
)  # fmt: skip
_OF_UNIT: dict[str, Thing] = {
    "chips": "chips", "slices": "slices", "layers": "layers", "experts": "experts", "microbatches": "microbatches",
    "sequences": "batch", "sequences/chip": "per_device_batch",
}  # fmt: skip
_TECHNIQUE = re.compile(
    r"grad(?:ient)?s?[_ -]acc(?:um\w*)?|accumulat(?:e|ing) gradients|micro-?batching"
    r"|interleav\w*(?: pipelin\w*| schedule)?|virtual (?:pipeline )?stages?|vpp"
    r"|(?:chunked|tiled) (?:loss|logits|cross[- ]entropy|vocab\w*)",
    re.I,
)
"""Words for a technique, which ask for more of it without a number."""
_LACKED = re.compile(
    r"\b(?:no|without|drop\w*|disabl\w+|turn\w* off|switch\w* off|remov\w+|skip\w*|get rid of|never mind|instead of)"
    r"\s+(?:(?:the|any|all|our)\s+)*$",
    re.I,
)
"""Words before a technique that is not to be used."""
_OF_A_PART = re.compile(
    r"\s*(?:layers?|blocks|experts?)?\s*(?:/|\b(?:per|each|(?:on|in) (?:an?|each|every))\b)\s*"
    r"(?:(?:pp|vpp|pipeline|virtual|model) )?(?:stages?|ranks?|chunks?|chips?|devices?|gpus?|tpus?)\b",
    re.I,
)
"""Behind layers or experts: that many of a part, and not of the model, "8 layers/stage"."""
_HOW_MANY = re.compile(r"\bhow many (?:more )?$", re.I)
"""Before a thing whose number is asked for, and not named."""
_PER = re.compile(r"\b(?:per|each|every)\s+$|\w/\s*$", re.I)
_PLACE = re.compile(r"\b(?:across|between|inside|within|cross|inter|off)\s+(?:(?:the|our|all|any|a|one)\s+)*$", re.I)
"""Before nodes in which something lies, and no number of them: "ep8 across nodes"."""
_ONE = re.compile(r"\b(?:our|the|a|an|this|one|my)\s+$", re.I)
"""Before a chip of which something is said, and no number of them: "our chip has 16"."""
_ANOTHER_SLICE = re.compile(r"\b(?:second|another|additional|extra|third) (?:slice|pod)\b", re.I)
_KEPT_BEFORE = re.compile(
    r"\b(?:(?:without|not|n't|no|never|rather than|instead of)\s+(?:to\s+)?(?:an?\s+|any\s+)?"
    r"(?:(?:touch|chang|cut|reduc|lower|shrink|halv|drop|mess|giv)\w*(?:\s+(?:with|up))?"
    r"|(?:small|short|low|less|few|larg|bigg|long|high)\w*)"
    r"|keep\w*|hold\w*|same|fixed|constant|unchanged)\s+(?:(?:the|our|my|this|any|global)\s+)*$",
    re.I,
)
_KEPT_AFTER = re.compile(
    r"\s*(?:size\s+)?(?:(?:is|as|has to|must|should|can)\s+(?:it is|is|stay|be)?\s*)?"
    r"(?:fixed|unchanged|untouched|constant|the same|stays?|kept|as (?:it )?is|alone)\b",
    re.I,
)
_ALONE = re.compile(r"\s*(?:size\s+)?alone\b", re.I)
_LEFT = re.compile(r"\b(?:leav|let|keep)\w*\b", re.I)
"""Before what is left alone; "offload alone" is that and no more."""
_SEPARATOR = re.compile(r"[,;:.]|\band\b|\bwhile\b|\bbut\b", re.I)
_APART = 15
"""Characters that a separator counts for."""
_REACHES = re.compile(r"\b(?:reach\w*|hit|beat|exceed|surpass|get (?:us )?(?:to|past|over))\s+(?:the\s+)?$", re.I)
_AGAINST_ORDER = 0.5
"""What the other order of thing and amount counts for, so that of two that are as near the one behind the name is its:
"seq 16k gbs 64"."""
_FAR = 40
"""Characters between a thing and an amount from which they have nothing to do with each other."""


def counts_in(text: str, amounts: Sequence[Amount], *, sized: bool) -> tuple[dict[Thing, To], list[Amount]]:
    """The things that a text sets, each with its value, and the amounts that it sets them to.

    Args:
        text: a sentence without written plans.
        amounts: the amounts in it that may be counts.
        sized: the number of chips is said otherwise: it belongs to a slice that is named.
    """
    things = [one for one in _things(text) if not (sized and one[0] == "chips")]
    names_first = bool(things) and bool(amounts) and min(start for _, start, _ in things) < amounts[0].start
    pairs = sorted(
        (_distance(text, start, end, amount) + _AGAINST_ORDER * ((amount.start < start) == names_first), order, index)
        for order, (thing, start, end) in enumerate(things)
        for index, amount in enumerate(amounts)
        if _may_be(thing, amount)
        and not (amount.end <= start and _LACKED.search(text[:start]))
        and not _HOW_MANY.search(text[:start])
    )
    counts: dict[Thing, To] = {}
    used: list[int] = []
    for distance, order, index in pairs:
        thing = things[order][0]
        if distance <= _FAR and thing not in counts and index not in used:
            counts[thing] = new_value(thing, amounts[index])
            used.append(index)
    for index, amount in enumerate(amounts):
        thing = _OF_UNIT.get(amount.unit)
        if thing is not None and index not in used and thing not in counts and not (sized and thing == "chips"):
            counts[thing] = new_value(thing, amount)
            used.append(index)
    for index, amount in enumerate(amounts):
        if index not in used and "sequence" not in counts and _looks_like_a_sequence(amount, text[: amount.start]):
            counts["sequence"] = new_value("sequence", amount)
            used.append(index)
    kept = things_kept(text)
    for thing, start, end in [one for one in things if one[0] not in kept]:
        if thing not in counts and _TECHNIQUE.fullmatch(text[start:end]) and _LACKED.search(text[:start]):
            counts[thing] = To(value=1)
        factor = direction(text, start, end) or (2.0 if _TECHNIQUE.fullmatch(text[start:end]) else None)
        if thing not in counts and factor is not None:
            counts[thing] = To(value=factor, factor=True, example=True)
    if (more := _ANOTHER_SLICE.search(text)) and "slices" not in counts:
        counts["slices"] = To(value=2 if "third" not in more.group().lower() else 3)
    return counts, [amounts[index] for index in used]


def nearest_thing(text: str, place: int) -> Thing | None:
    """The thing that stands nearest to a place in a text, if one does."""
    found = _things(text)
    near: list[tuple[int, Thing]] = [(abs(place - (end if end <= place else start)), one) for one, start, end in found]
    return next((thing for distance, thing in sorted(near) if distance < _FAR), None)


def things_named(text: str) -> list[Thing]:
    """The things that a text names."""
    return [thing for thing, _, _ in _things(text)]


def is_of_a_part(amount: Amount, text: str) -> bool:
    """Whether it counts layers or experts of a stage or a device."""
    layers = amount.unit in {"layers", "experts"} or re.match(
        r"\s*(?:layers?|blocks|experts?)", text[amount.end :], re.I
    )
    return bool(layers) and _OF_A_PART.match(text, amount.end) is not None


def things_kept(text: str) -> set[Thing]:
    """The things that a text wants to stay as they are: "without touching the batch", "at the same sequence"."""
    kept: set[Thing] = set()
    for thing, start, end in _things(text):
        alone = _ALONE.match(text[end:]) and not _LEFT.search(text[:start])
        if _KEPT_BEFORE.search(text[:start]) or (_KEPT_AFTER.match(text[end:]) and not alone):
            kept.add(thing)
    return kept


def new_value(thing: Thing, amount: Amount) -> To:
    """What an amount sets a thing to."""
    if amount.unit == "x":
        return To(value=amount.value, factor=True)
    return To(value=thousands(amount) if thing in {"sequence", "batch", "d_model"} else round(amount.value))


def _things(text: str) -> list[tuple[Thing, int, int]]:
    found: list[tuple[Thing, int, int]] = []
    for thing, words in _THINGS:
        for match in re.compile(rf"(?<![a-z])(?:{words})(?![a-z])", re.I).finditer(text):
            part = thing in {"layers", "experts"} and _OF_A_PART.match(text, match.end())
            taken = part or any(start < match.end() and match.start() < end for _, start, end in found)
            noun = thing == "chips" and not match.group().lower().endswith((" to", " on"))
            place = noun and _PLACE.search(text[: match.start()])
            one = noun and _ONE.search(text[: match.start()]) and not match.group().endswith("s")
            if not taken and not one and not place and not _PER.search(text[: match.start()]):
                found.append((thing, match.start(), match.end()))
    return found


def _looks_like_a_sequence(amount: Amount, before: str) -> bool:
    """``8k`` or ``128k`` of nothing that is named, unless it is what something is to reach."""
    return (
        not amount.unit and not _REACHES.search(before) and re.fullmatch(r"\d{1,4} ?k", amount.text, re.I) is not None
    )


def _distance(text: str, start: int, end: int, amount: Amount) -> int:
    """Characters between a thing and an amount; a comma or an "and" between them keeps them apart."""
    between = text[end : amount.start] if amount.start >= end else text[amount.end : start]
    if len(between) > _FAR:
        return len(between)
    return len(between) + _APART * len(_SEPARATOR.findall(between))


def _may_be(thing: Thing, amount: Amount) -> bool:
    """Whether a thing can be so many: what is counted is whole."""
    if amount.unit == "" and amount.value % 1:
        return False
    if amount.unit == "steps":
        return thing == "microbatches"
    if amount.unit in {"", "x"}:
        return not (thing == "sequence" and amount.unit == "" and amount.value < 64 and "k" not in amount.text.lower())
    if amount.unit in {"tokens", "sequences"} and thing == "sequence":
        return amount.unit == "tokens" or "k" in amount.text.lower()
    return _OF_UNIT.get(amount.unit) == thing
