"""What a sentence wants changed: batch, sequence, hardware, model, precision, optimizer, settings of the plan."""

import re
from collections.abc import Collection, Mapping, Sequence
from typing import Literal

from pydantic import BaseModel, ConfigDict

from asap.chat.understanding.quantities.amounts import Amount
from asap.chat.understanding.quantities.hardware.hardware_names import (
    INSTEAD,
    hardware_in,
    says_how_many,
    without_count,
)
from asap.chat.understanding.quantities.hardware.network import network_factor, network_in, without_rate
from asap.chat.understanding.quantities.model_names import model_in
from asap.chat.understanding.quantities.not_wanted import is_dropped
from asap.chat.understanding.quantities.rematerialisation.offloading import leaves_host, offloading_in
from asap.chat.understanding.quantities.rematerialisation.recomputed_modules import recomputed_modules_in
from asap.chat.understanding.quantities.rematerialisation.saved_tensors import saved_tensors_in
from asap.chat.understanding.quantities.state_precision import narrow_states_in, state_precision_in
from asap.chat.understanding.quantities.things import Thing, To, counts_in, new_value
from asap.levers.state_precision import StateSetting
from asap.plans import Plan, Remat
from asap.plans.remat import Offload, Policy, StatePrecision


class Change(BaseModel):
    """Everything that is to be different.

    With ``same_tokens`` the batch follows the sequence, with ``same_local_batch`` the number of chips;
    ``offload`` says what the host is to keep, and what not.
    """

    model_config = ConfigDict(frozen=True)

    counts: tuple[tuple[Thing, To], ...] = ()
    hardware: str | None = None
    model: str | None = None
    precision: str | None = None
    optimizer: str | None = None
    remat: Policy | Literal["any"] | None = None
    state: tuple[tuple[StateSetting, StatePrecision], ...] = ()
    offload: tuple[tuple[Offload, bool], ...] = ()
    network: str | None = None
    network_factor: float | None = None
    capacity_factor: float | None = None
    same_tokens: bool = False
    same_local_batch: bool = False

    @property
    def empty(self) -> bool:
        """Whether nothing is to change."""
        return self == Change()

    @property
    def of_nothing_but_chips(self) -> bool:
        """Whether it is empty but for the number and the kind of chips, as it is where time on them is named."""
        left = tuple(pair for pair in self.counts if pair[0] != "chips")
        return self.model_copy(update={"counts": left, "hardware": None}).empty

    @property
    def of_network(self) -> bool:
        """Whether the network between nodes is to be another."""
        return self.network is not None or bool(self.network_factor)

    @property
    def with_other_examples(self) -> "Change":
        """The same in the other direction of what was taken for an example: half of it instead of twice."""
        turned = tuple(
            (thing, to.model_copy(update={"value": 1 / to.value}) if to.example and to.factor else to)
            for thing, to in self.counts
        )
        return self.model_copy(update={"counts": turned})

    def get(self, thing: Thing) -> To | None:
        """What becomes of one thing."""
        return dict(self.counts).get(thing)


PRECISION = re.compile(r"\b(int8|int4|fp8|float8|fp4|nanoo_fp8|bf16|bfloat16|fp32|float32)\b", re.I)
_OPTIMIZER = re.compile(
    r"\b(adamw|adafactor|adam_pax|(?:8|eight)-?bit[- ](?:adam\w*|optimi[sz]er)|adam|sgd|muon|lion|shampoo|soap"
    r"|sophia)\b",
    re.I,
)
_REMAT = re.compile(
    r"\b(?:remat\w*|(?:re)?comput\w* (?:nothing|everything|policy)|recomput\w*|(?:activation"
    r"|gradient)? ?checkpointing|rematerial\w*|(?-i:AC)"
    r"|activation_checkpoint\w*|recompute_granularity)\b",
    re.I,
)
_POLICY = re.compile(rf"\b({'|'.join(sorted((p.value for p in Remat), key=len, reverse=True))})\b", re.I)
_SELECTIVE_ALONE = re.compile(
    r"\bselective(?=\W*$|\s*[,;.?!+&/]|\s+(?:at|and|with|on|for|in|vs|or|then|now|too|instead|[tpec]p\d*|mbs|gbs)\b)",
    re.I,
)
"""Rematerialisation without its name: "tp1 + selective"."""
_NO_REMAT = re.compile(
    r"\b(?:no|without|turn\w* off|switch\w* off|disabl\w+|drop\w*|avoid\w*)\s+(?:\w+\s+)?(?:remat|checkpoint|recomput)"
    r"(?!\w*\s+chang)|\b(?:remat|recomput|checkpoint)\w*\s+(?:is\s+|was\s+|were\s+)?(?:off|nothing|disabled)\b"
    r"|\brecomput\w* nothing\b",
    re.I,
)
_TO_POLICY = re.compile(rf"{_POLICY.pattern}\s*(?:-+>|=>|→|to)\s*{_POLICY.pattern}".replace("(", "(?:", 1), re.I)
"""From one policy to another: "remat full -> minimal"."""
_INSTEAD_OF_POLICY = re.compile(
    rf"\b(?:instead of|rather than)\s+(?:the\s+)?{_POLICY.pattern}(?=\s*(?:[?.!,]|$))", re.I
)
_SAME_TOKENS = re.compile(
    r"\b(?:same|constant|equal|unchanged) (?:number of )?tokens\b|\btokens (?:\w+ ){0,3}(?:constant|the same|fixed)\b",
    re.I,
)
_SAME_LOCAL = re.compile(
    r"\b(?:same|constant|equal|unchanged|fixed) (?:local[- _]?batch|lbs|(?:micro[- ]?)?batch(?: size)? (?:per|a"
    r"|on each|/) ?\w+"
    r"|(?:tokens|work|per[- ](?:gpu|chip|device|tpu) batch)\w* ?(?:per|a|/)? ?(?:gpu|chip|device|tpu)?)"
    r"|\b(?:batch(?: size)?|bs|tokens|work) ?(?:per|a|on each|/) ?(?:gpu|chip|device|tpu|core)s? (?:\w+ ){0,2}?"
    r"(?:the same|constant|fixed|unchanged|equal)\b"
    r"|\bweak(?:ly)?[- ]scal\w+|\bbatch (?:that )?(?:grow|scal)\w* (?:with|along)",
    re.I,
)
_CAPACITY = re.compile(r"\bcapacity(?:[_ -]?factor)?\s*(?:of|=|:|to|at)?\s*(\d+(?:\.\d+)?)", re.I)
_ALSO_ACTIVATIONS = re.compile(r"\boffload\w*[^?]*\bactivations?\b", re.I)
_OFFLOADED = re.compile(r"\boffload\w*\b", re.I)


def change_in(text: str, amounts: Sequence[Amount], earlier: Change | None = None) -> tuple[Change, list[Amount]]:
    """What a text wants changed, and the amounts that it says it with.

    Args:
        text: a sentence without written plans.
        amounts: the amounts in it.
        earlier: the change spoken of before, whose rematerialisation a word such as "full" may be of.
    """
    hardware, spans = hardware_in(text)
    named = [a for a in amounts if any(s <= a.start < e or s < a.end <= e for s, e in spans)]
    model, of_model = model_in(text)
    named += [a for a in amounts if any(s <= a.start < e for s, e in of_model)]
    left = [a for a in amounts if not a.before and a not in named]
    sized = hardware is not None and says_how_many(hardware)
    if capacity := _CAPACITY.search(text):
        named += [a for a in left if capacity.start() <= a.start < capacity.end()]
        left = [a for a in left if a not in named]
    network = network_in(text, earlier.network if earlier else None)
    if network is not None:
        named, left = [*named, *left], without_rate(text, left)
        named = [amount for amount in named if amount not in left]
    faster = network_factor(text, left) if network is None else None
    if faster is not None:
        left, named = [], [*named, faster]
    counts, used = counts_in(text, left, sized=sized)
    if (sliced := counts.get("slices")) and sliced.factor and not re.search(r"slices|pods", text, re.I):
        counts["chips"] = counts.pop("slices")
    state, stateless = state_precision_in(text)
    narrow, stateless = narrow_states_in(stateless)
    optimizer = f"adamw with {narrow} moments" if narrow else _named(_OPTIMIZER, text, {"adam": "adamw"})
    moved = offloading_in(text)
    change = Change(
        counts=_sorted(counts),
        hardware=hardware,
        model=model,
        precision=_named(PRECISION, stateless, {"bfloat16": "bf16", "float32": "fp32", "float8": "fp8"}),
        optimizer=optimizer,
        remat=None if moved and not _ALSO_ACTIVATIONS.search(text) else _remat(text, earlier),
        offload=moved,
        state=tuple(state.items()),
        network=network,
        network_factor=faster.value if faster else None,
        capacity_factor=float(capacity[1]) if capacity else None,
        same_local_batch=_SAME_LOCAL.search(text) is not None and ("chips" in counts or hardware is not None),
        same_tokens=_SAME_TOKENS.search(text) is not None and "sequence" in counts,
    )
    return change, [*used, *named]


def with_earlier(change: Change, earlier: Change) -> Change:
    """A change on top of the one before: of what both name the later one holds, "v5e-128" and chips alike."""
    said = {name for name in Change.model_fields if getattr(change, name) != getattr(Change(), name)}
    update = {name: getattr(change, name) for name in said - {"counts"}}
    before = dict(earlier.counts)
    if change.hardware and says_how_many(change.hardware):
        before = dict(pair for pair in earlier.counts if pair[0] not in {"chips", "slices"})
    elif earlier.hardware and not change.hardware and {"chips", "slices"} & dict(change.counts).keys():
        update["hardware"] = without_count(earlier.hardware)
    return earlier.model_copy(update={**update, "counts": _sorted({**before, **dict(change.counts)})})


def without_things(change: Change, things: Collection[Thing]) -> Change:
    """The change without what is to stay as it is."""
    left = tuple(pair for pair in change.counts if pair[0] not in things)
    follows = change.same_local_batch and "batch" not in things
    return change.model_copy(update={"counts": left, "same_local_batch": follows})


_AGAIN = re.compile(r"\b(?:that|it|this|those|again|another|further|more)\b", re.I)
"""Words by which a factor is of what was spoken of: "half of that", "double it again"."""
_COMPARED = re.compile(r"\b(?:slower|faster|quicker|longer|shorter)\b", re.I)
"""Says that a number is of a comparison: "so slower by half?"."""
_CONSEQUENCE = re.compile(
    r"\b(?!(?:it|that|this|what|who|and|or|if|we|you|batch|sequence)\b)[a-z]\w*"
    r" (?:halves|doubles|triples|quadruples)\b",
    re.I,
)
"""Says what follows of something else: "then m halves"."""
_FAR_LESS = 100
"""Times by which a lone number is too small to take the place of another one."""
_ALTERNATIVE = re.compile(r"\W*or\b", re.I)
"""The start of an alternative to what was spoken of: "or half as many"."""


def varied(change: Change, earlier: Change, left: Sequence[Amount], text: str) -> tuple[Change, list[Amount]]:
    """A change with a lone number as the new value of the one thing that was changed before: "and 128?".

    A factor is one of the value that was spoken of: "and half of that?". After a factor it is another one of what runs
    now, "and 4x?" after "twice the batch", unless it comes again on top of that; so it is in an alternative.
    """
    free = [a for a in left if not a.before and a.unit in {"", "x"} and not _COMPARED.search(text)]
    free = [a for a in free if a.unit or not a.value % 1]
    if change.counts or len(earlier.counts) != 1 or len(free) != 1 or _CONSEQUENCE.search(text):
        return change, []
    thing, before = earlier.counts[0]
    new = new_value(thing, free[0])
    if not new.factor and not before.factor and new.value * _FAR_LESS < before.value:
        return change, []
    on_top = _AGAIN.search(text) is not None or not before.factor
    if new.factor and on_top and not _ALTERNATIVE.match(text):
        new = before.model_copy(update={"value": before.value * new.value, "example": False})
    return change.model_copy(update={"counts": ((thing, new),)}), free


def _sorted(counts: Mapping[Thing, To]) -> tuple[tuple[Thing, To], ...]:
    return tuple(sorted(counts.items(), key=lambda pair: pair[0]))


def instead_of_policy(text: str) -> Remat | None:
    """The rematerialisation in whose place another one is to come: "selective instead of none"."""
    found = _INSTEAD_OF_POLICY.search(text)
    return Remat(found[1].lower()) if found is not None else None


def is_of_settings(change: Change) -> bool:
    """Whether all that is to change is set by a plan, beside its mesh."""
    of_plan: set[Thing] = {"microbatches", "micro_batch_size", "pipeline_repeats", "loss_chunks"}
    named = {name for name in Change.model_fields if getattr(change, name) != getattr(Change(), name)}
    settings = named <= {"counts", "remat", "state", "offload"} and dict(change.counts).keys() <= of_plan
    named_values = not any(to.example for _, to in change.counts)
    return bool(named) and settings and named_values and change.remat != "any"


def plan_settings(change: Change, plan: Plan, batch: int | None = None) -> Plan:
    """A plan with the settings of a change; a microbatch of so many sequences needs the global batch."""
    fields: dict[str, object] = dict(change.state)
    if change.remat is not None and change.remat != "any":
        fields["remat"] = change.remat
    if change.offload:
        left = [what for what in plan.offload if what not in dict(change.offload)]
        fields["offload"] = tuple(sorted((*left, *(what for what, on_host in change.offload if on_host))))
    if leaves_host(change.offload) and change.remat is None and plan.moves_activations:
        fields |= {"remat": Remat.FULL, "offload": ()}
    if (steps := change.get("microbatches")) and (count := steps.of(plan.microbatches or 1)):
        fields["microbatches"] = count
    elif (size := change.get("micro_batch_size")) and batch:
        sequences = batch / plan.batch_shards
        own = size.of(round(sequences / (plan.microbatches or 1))) or 1
        fields["microbatches"] = max(round(sequences / own), 1)
    if (repeats := change.get("pipeline_repeats")) and (count := repeats.of(plan.pipeline_repeats)):
        fields["pipeline_repeats"] = count
    if (chunks := change.get("loss_chunks")) and (count := chunks.of(plan.loss_chunks or 1)):
        fields["loss_chunks"] = count
    return plan.model_copy(update=fields) if fields else plan


def _named(pattern: re.Pattern[str], text: str, names: dict[str, str]) -> str | None:
    before = [(match, text[: match.start()]) for match in pattern.finditer(text)]
    found = [match for match, said in before if not INSTEAD.search(said) and not is_dropped(said)]
    return None if not found else names.get(found[-1][1].lower(), found[-1][1].lower())


def _remat(text: str, earlier: Change | None) -> "Policy | Literal['any'] | None":
    if (kept := saved_tensors_in(text)) is not None:
        return kept
    if (modules := recomputed_modules_in(text)) is not None:
        return modules
    if _NO_REMAT.search(text):
        return Remat.NONE
    text = _INSTEAD_OF_POLICY.sub(" ", text)
    policy, named = _POLICY.search(text), _REMAT.search(text)
    named = named or _SELECTIVE_ALONE.search(text)
    spoken = named or (earlier is not None and earlier.remat is not None)
    if named and (moved := _TO_POLICY.search(text)):
        return Remat(moved[1].lower())
    between = re.search(r"\bpolic\w+\b.*\bbetween\b|\bbetween\b.*\b(?:full|minimal)\b", text, re.I)
    if between or (named and len({found.lower() for found in _POLICY.findall(text)}) > 1):
        return "any"
    if re.search(r"\bremat\w*\s+(?:nothing|none)\b|\brecomputes? nothing\b|rematerialise nothing", text, re.I):
        return Remat.NONE
    if named and re.search(r"\beverything\b|\ball\b", text, re.I) and not policy:
        return Remat.FULL
    if policy and (spoken or policy[1].lower() not in {"none", "full", "minimal", "selective"}):
        return Remat(policy[1].lower())
    if _OFFLOADED.search(text) and (spoken or re.search(r"\bactivations?\b", text, re.I)):
        return Remat.OFFLOAD
    return "any" if _REMAT.search(text) else None
