"""What a sentence wants changed: batch, sequence, hardware, model, precision, optimizer, settings of the plan.

A change is a thing (a noun, or the unit of a number) with the amount that stands nearest to it. Each amount belongs to
one thing at most, so that "sequence length 16384 and batch 64" changes both.
"""

import re
from collections.abc import Mapping, Sequence
from typing import Literal

from pydantic import BaseModel, ConfigDict

from asap.chat.understanding.quantities import Amount, thousands
from asap.plans import Plan, Remat

Thing = Literal[
    "batch", "per_device_batch", "sequence", "chips", "slices", "layers", "experts", "experts_per_token", "d_model",
    "microbatches",
]  # fmt: skip


class To(BaseModel):
    """A new value, or a factor of the value that holds now."""

    model_config = ConfigDict(frozen=True)

    value: float
    factor: bool = False

    def of(self, now: int | None) -> int | None:
        """The new count; ``None`` where a factor has nothing to multiply."""
        if not self.factor:
            return round(self.value)
        return None if now is None else max(round(now * self.value), 1)


class Change(BaseModel):
    """Everything that is to be different; ``plan`` is what is to run then, where one was named."""

    model_config = ConfigDict(frozen=True)

    counts: tuple[tuple[Thing, To], ...] = ()
    hardware: str | None = None
    precision: str | None = None
    optimizer: str | None = None
    remat: Remat | Literal["any"] | None = None
    offload: str | None = None

    @property
    def empty(self) -> bool:
        """Whether nothing is to change."""
        return self == Change()

    def get(self, thing: Thing) -> To | None:
        """What becomes of one thing."""
        return dict(self.counts).get(thing)


_THINGS: tuple[tuple[Thing, str], ...] = (
    (
        "per_device_batch",
        r"per[_ -](?:device|chip|gpu|core)[_ -](?:train[_ -])?batch(?:[_ -]size)?|micro[_ -]batch[_ -]size"
        r"|batch(?: size)? (?:per|of each|a) (?:device|chip|gpu|core)",
    ),
    ("microbatches", r"micro-?batch(?:es|ing)?|gradient[_ -]accumulation(?:[_ -]steps)?|accumulat\w+(?: steps)?"),
    (
        "batch",
        r"(?:global[_ -])?(?:train[_ -])?batch(?:es)?(?:[_ -]size)?|gbs"
        r"|sequences (?:per|a|each|in a) (?:step|batch)",
    ),
    (
        "sequence",
        r"(?:sequences?|context|seq)(?:[_ -]?(?:len\w*|window|size))?|max_target_length"
        r"|\d+ ?k (?:sequences?|context)",
    ),
    ("layers", r"(?:decoder )?layers?|blocks|num_layers|depth"),
    ("experts_per_token", r"top-?(?=\d)|experts per token|active experts"),
    ("experts", r"experts?(?! parallel| shard| axis)"),
    ("d_model", r"d_model|hidden (?:size|width|dimension)|model (?:width|dimension)|embedding (?:size|width)"),
    ("slices", r"slices?|pods?"),
    ("chips", r"chips?|devices?|tpus?|gpus?|accelerators?|cores?|machines|hardware|cluster"),
)  # fmt: skip
_OF_UNIT: dict[str, Thing] = {
    "chips": "chips", "slices": "slices", "layers": "layers", "experts": "experts", "microbatches": "microbatches",
    "sequences": "batch",
}  # fmt: skip
_HARDWARE = re.compile(r"\b(v\d[a-z]{0,2}(?:-\d+)?|[abh]\d{2,3}(?:-\d+)?|gb200(?:-\d+)?|trillium|ironwood)\b", re.I)
_CHIP_ONLY = re.compile(r"\d*\s*\b(v\d[a-z]{0,2}|[abh]\d{2,3}|gb200)\b\s+(?:chips?|devices?|tpus?|gpus?)", re.I)
_PRECISION = re.compile(r"\b(int8|int4|fp8|fp4|nanoo_fp8|bf16|bfloat16|fp32|float32)\b", re.I)
_OPTIMIZER = re.compile(r"\b(adamw|adafactor|adam_pax|adam|sgd|muon|lion|shampoo)\b", re.I)
_INSTEAD = re.compile(r"\b(?:instead of|rather than|from|replac\w+|away from)\s+(?:the\s+)?$", re.I)
_REMAT = re.compile(
    r"\b(?:remat\w*|(?:re)?comput\w* (?:nothing|everything|policy)|recomput\w*|(?:activation"
    r"|gradient)? ?checkpointing|rematerial\w*)\b",
    re.I,
)
_POLICY = re.compile(rf"\b({'|'.join(sorted((p.value for p in Remat), key=len, reverse=True))})\b", re.I)
_NO_REMAT = re.compile(
    r"\b(?:no|without|turn\w* off|switch\w* off|disabl\w+|drop\w*|avoid\w*)\s+(?:\w+\s+)?(?:remat|checkpoint|recomput)"
    r"|\bremat\w*\s+(?:is\s+|was\s+|were\s+)?(?:off|nothing|disabled)\b|\brecomput\w* nothing\b",
    re.I,
)
_OFFLOADED = re.compile(r"\boffload\w*\b", re.I)
_PER = re.compile(r"\b(?:per|each|every)\s+$", re.I)
_ANOTHER_SLICE = re.compile(r"\b(?:second|another|additional|extra|third) (?:slice|pod)\b", re.I)
_FAR = 40
"""Characters between a thing and an amount from which they have nothing to do with each other."""


def change_in(text: str, amounts: Sequence[Amount], earlier: Change | None = None) -> tuple[Change, list[Amount]]:
    """What a text wants changed, and the amounts that it says it with.

    Args:
        text: a sentence without written plans.
        amounts: the amounts in it.
        earlier: the change spoken of before; a lone number is a new value of the same thing.
    """
    hardware, spans = _hardware(text)
    named = [a for a in amounts if any(s <= a.start < e or s < a.end <= e for s, e in spans)]
    left = [a for a in amounts if not a.before and a not in named]
    counts: dict[Thing, To]
    counts, used = _assigned(text, left, hardware is not None)
    if (sliced := counts.get("slices")) and sliced.factor and not re.search(r"slices|pods", text, re.I):
        counts["chips"] = counts.pop("slices")
    free = [a for a in left if a not in used and a.unit in {"", "x"}]
    if not counts and earlier is not None and len(earlier.counts) == 1 and len(free) == 1:
        thing = earlier.counts[0][0]
        counts = {thing: _to(thing, free[0])}
        used = [*used, free[0]]
    change = Change(
        counts=_sorted(counts),
        hardware=hardware,
        precision=_named(_PRECISION, text, {"bfloat16": "bf16", "float32": "fp32"}),
        optimizer=_named(_OPTIMIZER, text, {"adam": "adamw"}),
        remat=_remat(text, earlier),
    )
    return change, [*used, *named]


def _sorted(counts: Mapping[Thing, To]) -> tuple[tuple[Thing, To], ...]:
    return tuple(sorted(counts.items(), key=lambda pair: pair[0]))


def plan_settings(change: Change, plan: Plan) -> Plan:
    """A plan with the settings of a change."""
    fields: dict[str, object] = {}
    if isinstance(change.remat, Remat):
        fields["remat"] = change.remat
    if (steps := change.get("microbatches")) and (count := steps.of(plan.microbatches or 1)):
        fields["microbatches"] = count
    return plan.model_copy(update=fields) if fields else plan


def _assigned(text: str, amounts: Sequence[Amount], hardware: bool) -> tuple[dict[Thing, To], list[Amount]]:
    things = _things(text)
    pairs = sorted(
        (_distance(start, end, amount), order, index)
        for order, (_, start, end) in enumerate(things)
        for index, amount in enumerate(amounts)
        if _may_be(things[order][0], amount)
    )
    counts: dict[Thing, To] = {}
    used: list[int] = []
    for distance, order, index in pairs:
        thing = things[order][0]
        if distance > _FAR or thing in counts or index in used or (thing == "chips" and hardware):
            continue
        counts[thing] = _to(thing, amounts[index])
        used.append(index)
    for index, amount in enumerate(amounts):
        of_unit = _OF_UNIT.get(amount.unit)
        if (
            index not in used
            and of_unit is not None
            and of_unit not in counts
            and not (of_unit == "chips" and hardware)
        ):
            counts[of_unit] = _to(of_unit, amount)
            used.append(index)
    if (more := _ANOTHER_SLICE.search(text)) and "slices" not in counts:
        counts["slices"] = To(value=2 if "third" not in more.group().lower() else 3)
    return counts, [amounts[index] for index in used]


def _things(text: str) -> list[tuple[Thing, int, int]]:
    found: list[tuple[Thing, int, int]] = []
    for thing, words in _THINGS:
        for match in re.compile(rf"(?<![a-z])(?:{words})(?![a-z])", re.I).finditer(text):
            taken = any(start < match.end() and match.start() < end for _, start, end in found)
            if not taken and not _PER.search(text[: match.start()]):
                found.append((thing, match.start(), match.end()))
    return found


def _distance(start: int, end: int, amount: Amount) -> int:
    return max(amount.start - end, start - amount.end, 0)


def _may_be(thing: Thing, amount: Amount) -> bool:
    if amount.unit in {"", "x"}:
        return not (thing == "sequence" and amount.unit == "" and amount.value < 64 and "k" not in amount.text.lower())
    if amount.unit in {"tokens", "sequences"} and thing == "sequence":
        return amount.unit == "tokens" or "k" in amount.text.lower()
    return _OF_UNIT.get(amount.unit) == thing


def _to(thing: Thing, amount: Amount) -> To:
    if amount.unit == "x":
        return To(value=amount.value, factor=True)
    return To(value=thousands(amount) if thing in {"sequence", "batch", "d_model"} else round(amount.value))


def _hardware(text: str) -> tuple[str | None, list[tuple[int, int]]]:
    """A slice by its name; "128 v5e chips" is ``v5e-128``."""
    if (only := _CHIP_ONLY.search(text)) and (count := re.search(r"(\d+)\s*$", text[: only.start(1)])):
        return f"{only[1].lower()}-{count[1]}", [(count.start(), only.end())]
    matches = [m for m in _HARDWARE.finditer(text) if not _INSTEAD.search(text[: m.start()])]
    spans = [(m.start(), m.end()) for m in _HARDWARE.finditer(text)]
    if not matches:
        return None, spans
    name = matches[-1][1].lower()
    return {"trillium": "v6e", "ironwood": "v7x"}.get(name, name), spans


def _named(pattern: re.Pattern[str], text: str, names: dict[str, str]) -> str | None:
    found = [m for m in pattern.finditer(text) if not _INSTEAD.search(text[: m.start()])]
    return None if not found else names.get(found[-1][1].lower(), found[-1][1].lower())


def _remat(text: str, earlier: Change | None) -> "Remat | Literal['any'] | None":
    if _NO_REMAT.search(text):
        return Remat.NONE
    policy, spoken = _POLICY.search(text), _REMAT.search(text) or (earlier is not None and earlier.remat is not None)
    between = re.search(r"\bpolic\w+\b.*\bbetween\b|\bbetween\b.*\b(?:full|minimal)\b", text, re.I)
    if between:
        return "any"
    if re.search(r"\bremat\w*\s+(?:nothing|none)\b|\brecomputes? nothing\b|rematerialise nothing", text, re.I):
        return Remat.NONE
    if spoken and re.search(r"\beverything\b|\ball\b", text, re.I) and not policy:
        return Remat.FULL
    if policy and (spoken or policy[1].lower() not in {"none", "full", "minimal", "selective"}):
        return Remat(policy[1].lower())
    if _OFFLOADED.search(text) and (spoken or re.search(r"\bactivations?\b", text, re.I)):
        return Remat.OFFLOAD
    return "any" if _REMAT.search(text) else None
