"""Which plans can run at all, with one clear sentence for each rule that a plan breaks.

A rule is written once, for numbers and for arrays alike: the enumeration checks thousands of plans with the same
expressions that explain a single one. A rule whose facts are unknown is not checked, and said to be so.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, fields, replace
from typing import Any

from asap.core.errors import PlanError
from asap.plans.plan import AXES, Plan
from asap.plans.remat import RecomputedLayers


@dataclass(frozen=True)
class LayerSplit:
    """What a launcher allows.

    Args:
        uneven: whether the last stage may hold fewer layers than the others.
        virtual: whether the last virtual stage may, too.
        said: whether it does only where a setting says so.
        laid_out: stages, and virtual stages of each, that settings on record fill one by one.
    """

    uneven: bool = False
    virtual: bool = False
    said: bool = False
    laid_out: tuple[int, int] | None = None

    def on_record(self) -> "LayerSplit":
        """What the settings on record allow, without another that would say more."""
        return replace(self, uneven=self.uneven and not self.said)

    def holds(self, layers: Any, stages: Any, repeats: Any) -> Any:
        """Whether layers go into so many stages, each of so many virtual ones; numbers or arrays."""
        allowed = layers % (stages * repeats) == 0
        if self.uneven:
            split = (repeats == 1) | self.virtual
            allowed = allowed | (split & (layers_of_last(layers, stages * repeats) > 0))
        if self.laid_out is not None:
            allowed = allowed | ((stages == self.laid_out[0]) & (repeats == self.laid_out[1]))
        return allowed


EVEN = LayerSplit()
"""Stages divide the layers."""


def layers_of_last(layers: Any, stages: Any) -> Any:
    """Layers that are left for the last stage where the others are as full as the fullest."""
    fullest = -(-layers // stages)
    return layers - fullest * (stages - 1)


@dataclass(frozen=True)
class Constraints:
    """The facts that limit a plan; ``None`` is unknown. A ``sharded_width``, ``whole_kv_heads`` or ``counted_layers``
    of 0 divides into any parts, and ``most_stages`` of 0 is no limit."""

    devices_per_slice: int | None = None
    slices: int | None = None
    global_batch: int | None = None
    sequence_length: int | None = None
    heads: int | None = None
    kv_heads: int | None = None
    whole_kv_heads: int = 0
    most_stages: int = 0
    experts: int | None = None
    layers: int | None = None
    counted_layers: int = 0
    sharded_width: int | None = None
    experts_over: tuple[str, ...] = ()
    split: LayerSplit = EVEN

    def proven_by(self, incumbent: Plan) -> "Constraints":
        """Fill an unknown batch or sequence with what a plan that ran has shown to divide."""
        shown = {
            "global_batch": incumbent.batch_shards * (incumbent.microbatches or 1),
            "sequence_length": incumbent.degree("seq"),
        }
        return replace(self, **{field: fact for field, fact in shown.items() if getattr(self, field) is None})


@dataclass(frozen=True)
class Degrees:
    """Degrees of one plan (integers) or of many (arrays of equal length)."""

    replica: Any
    data: Any
    seq: Any
    model: Any
    expert: Any
    stage: Any
    ici_devices: Any
    dcn_devices: Any
    microbatches: Any = 1
    pipeline_repeats: Any = 1
    recomputed_parts: Any = 1
    experts_over: tuple[str, ...] = ()
    split: LayerSplit = EVEN

    @classmethod
    def of(cls, plan: Plan, experts_over: tuple[str, ...] = (), split: LayerSplit = EVEN) -> "Degrees":
        """The degrees of one plan over both networks; ``experts_over``: axes beside its own over which experts lie,
        ``split``: how its stages may share the layers."""
        totals = {axis: plan.degree(axis) for axis in AXES}
        return cls(
            **totals,
            ici_devices=plan.ici.devices,
            dcn_devices=plan.dcn.devices,
            microbatches=plan.microbatches or 1,
            pipeline_repeats=plan.pipeline_repeats,
            recomputed_parts=recomputed_parts(plan),
            experts_over=experts_over,
            split=split,
        )

    @property
    def expert_devices(self) -> Any:
        """Devices over which the experts of a layer lie whole."""
        return math.prod([self.expert, *(getattr(self, axis) for axis in self.experts_over)])

    @property
    def width_shards(self) -> Any:
        """Devices over which FSDP lays the width of dense weights in JAX's stacks; MaxText's ``embed`` in the
        ``logical_axis_rules`` of its ``base.yml``."""
        return self.data * self.seq * self.expert

    @property
    def expert_axes(self) -> str:
        """The same in words: ``expert=8 x model=2``."""
        return " x ".join(f"{axis}={getattr(self, axis)}" for axis in ("expert", *self.experts_over))

    @property
    def batch_shards(self) -> Any:
        """Groups of devices that see different sequences."""
        return self.replica * self.data * self.expert


@dataclass(frozen=True)
class Rule:
    """One condition of validity."""

    name: str
    needs: str
    holds: Callable[[Degrees, Any], Any]
    sentence: str

    def explain(self, degrees: Degrees, fact: int) -> str:
        """The sentence for a plan that breaks this rule."""
        values = {field.name: getattr(degrees, field.name) for field in fields(degrees)}
        products = {name: getattr(degrees, name) for name in ("expert_axes", "width_shards")}
        return self.sentence.format(fact=fact, shards=degrees.batch_shards, **products, **values)


RULES = (
    Rule(
        "devices",
        "devices_per_slice",
        lambda d, n: d.ici_devices == n,
        "the degrees multiply to {ici_devices} devices, not to {fact}",
    ),
    Rule(
        "slices",
        "slices",
        lambda d, n: d.dcn_devices == n,
        "the DCN mesh multiplies to {dcn_devices}, and not to {fact}, the number of slices",
    ),
    Rule(
        "batch",
        "global_batch",
        lambda d, n: n % (d.batch_shards * d.microbatches) == 0,
        "a global batch of {fact} sequences does not divide into {shards} batch shards"
        " (replica x data x expert) times microbatches={microbatches}",
    ),
    Rule(
        "sequence",
        "sequence_length",
        lambda d, n: n % d.seq == 0,
        "a sequence of {fact} tokens does not divide over seq={seq}",
    ),
    Rule("heads", "heads", lambda d, n: n % d.model == 0, "{fact} query heads do not divide over model={model}"),
    Rule(
        "kv_heads",
        "kv_heads",
        lambda d, n: (n % d.model == 0) | (d.model % n == 0),
        "{fact} KV heads neither divide over model={model} nor repeat evenly on it",
    ),
    Rule(
        "whole_kv_heads",
        "whole_kv_heads",
        lambda d, n: n % d.model == 0,
        "{fact} KV heads do not divide over model={model}, and this launcher repeats none",
    ),
    Rule(
        "stages",
        "most_stages",
        lambda d, n: (d.stage <= n) | (n == 0),
        "this launcher splits no model with tied embeddings into stages",
    ),
    Rule(
        "experts",
        "experts",
        lambda d, n: (n % d.expert_devices == 0) & ((n > 0) | (d.expert == 1)),
        "{fact} experts do not divide over {expert_axes}",
    ),
    Rule(
        "layers",
        "layers",
        lambda d, n: d.split.holds(n, d.stage, d.pipeline_repeats),
        "{fact} layers do not divide into {stage} stages times pipeline_repeats={pipeline_repeats}",
    ),
    Rule(
        "recomputed_layers",
        "counted_layers",
        lambda d, n: (d.recomputed_parts == 1) | (n % (d.stage * d.pipeline_repeats * d.recomputed_parts) == 0),
        "remat recomputes no whole number of layers: {fact} in {stage} stages x pipeline_repeats={pipeline_repeats}",
    ),
    Rule(
        "width",
        "sharded_width",
        lambda d, n: n % d.width_shards == 0,
        "a width of {fact} does not divide over {width_shards} shards (data x seq x expert) of the weights",
    ),
)


def recomputed_parts(plan: Plan) -> int:
    """Parts of a stage's layers, some of which are recomputed; 1 where all are treated alike."""
    return plan.remat.share.denominator if isinstance(plan.remat, RecomputedLayers) else 1


@dataclass(frozen=True)
class Violation:
    """A rule that a plan breaks."""

    rule: str
    sentence: str


def violations(plan: Plan, constraints: Constraints) -> list[Violation]:
    """Every rule that the plan is known to break; empty if it can run as far as is known."""
    degrees = Degrees.of(plan, constraints.experts_over, constraints.split)
    broken = []
    for rule in RULES:
        fact = plan.global_batch if rule.name == "batch" and plan.global_batch else getattr(constraints, rule.needs)
        if fact is not None and not rule.holds(degrees, fact):
            broken.append(Violation(rule.name, rule.explain(degrees, fact)))
    return broken


def require_valid(plan: Plan, constraints: Constraints) -> None:
    """Raise PlanError with a sentence for each rule that the plan is known to break."""
    broken = violations(plan, constraints)
    if broken:
        slices = constraints.slices if broken[0].rule in ("devices", "slices") else 1
        over = f"degrees are of one slice; over {slices} slices add dcn.replica={slices}, or dcn.data={slices}"
        hint = over if slices and slices > 1 else None
        raise PlanError("; ".join(violation.sentence for violation in broken), where=str(plan), hint=hint)


def unchecked(constraints: Constraints) -> tuple[str, ...]:
    """Rules that could not be checked because their facts are unknown."""
    return tuple(rule.name for rule in RULES if getattr(constraints, rule.needs) is None)
