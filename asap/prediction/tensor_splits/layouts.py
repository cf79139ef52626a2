"""How each tensor lies under a program, beside how it lies under the plan of the program."""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import chain
from math import prod

from asap.mapping.coverage import Place, Target, layers_of
from asap.mapping.language.program import Mesh, Program
from asap.mapping.sharding import default_axes, shardings
from asap.prediction.step_model.communication import communication
from asap.prediction.step_model.compute import ACTIVATION_BYTES, BACKWARD_MATMUL
from asap.prediction.step_model.tpu_memory import load_tpu_buffers
from asap.prediction.tensor_splits.cost import Cost, Fabric

Axes = tuple[tuple[str, ...], ...]
"""Mesh axes of each dimension of a tensor."""


@dataclass(frozen=True)
class Weight:
    """A weight, with all layers of one stage that have it.

    Args:
        elements: before any split.
        reads: times that a microbatch gathers it.
        worked: the axes over which devices compute with parts of it; over all others they have other tokens.
    """

    elements: float
    reads: int
    worked: Axes


def storage_cost(weight: Weight, stored: Axes, fabric: Fabric) -> Cost:
    """What it costs to keep a weight split over ``stored``."""
    worked, kept = {*chain(*weight.worked)}, {*chain(*stored)}
    in_place = {axis for ours, theirs in zip(weight.worked, stored, strict=True) for axis in {*ours} & {*theirs}}
    elsewhere, gathered, missing = (worked & kept) - in_place, kept - worked, worked - kept
    copies = (
        {axis for axis in ("replica", "data", "seq", "expert", "model") if fabric.degree((axis,)) > 1} - worked - kept
    )
    part = weight.elements / fabric.degree(worked)
    shard = part / fabric.degree(gathered)
    work = fabric.inputs.workload
    gradient_bytes, following_bytes = float(work.reduce_bytes), float(work.gather_bytes)
    state_bytes = float(work.parameter_bytes + work.optimizer_bytes)
    read = fabric.over(gathered).gather(ACTIVATION_BYTES * part) + fabric.over(elsewhere).trade(
        ACTIVATION_BYTES * shard
    )
    written = fabric.over(gathered).gather(gradient_bytes * part) + fabric.over(elsewhere).trade(gradient_bytes * shard)
    between = fabric.over(copies)
    state = state_bytes * weight.elements / fabric.degree(kept) if missing else 0.0
    traffic = (float(work.gradient_bytes + 2 * work.optimizer_bytes + work.parameter_bytes) * shard) + state
    hbm = float(fabric.inputs.hardware.hbm_bandwidth * fabric.constants.memory_efficiency)
    return Cost(
        gathers=weight.reads * read + written,
        reductions=between.gather((gradient_bytes + following_bytes) * shard) + fabric.over(missing).gather(state),
        update=traffic / hbm,
    )


WIDTH, HIDDEN, EXPERTS = "embed", "hidden", "experts"
"""Dimensions by the names that programs have for them."""

Mlp = tuple[tuple[int, int] | None, bool]
"""Layers, and whether of their experts."""


@dataclass(frozen=True)
class TensorLayout:
    """A tensor in some layers: the axes of each dimension under the plan, and under the program."""

    place: Place
    usual: Axes
    stored: Axes

    @property
    def dimensions(self) -> tuple[str, ...]:
        """Names of its dimensions."""
        return tuple(dimension.name for dimension in self.place.tensor.dimensions)

    @property
    def mlp(self) -> Mlp | None:
        """The MLP that it is a weight of."""
        return (self.place.layers, EXPERTS in self.dimensions) if HIDDEN in self.dimensions else None

    def elements(self, stages: float) -> float:
        """Of all layers of one pipeline stage, before any split."""
        layers = len(layers_of(self.place)) / (stages if self.place.layers else 1.0)
        return layers * prod(dimension.length or 1 for dimension in self.place.tensor.dimensions)


def tensor_layouts(program: Program, mesh: Mesh, target: Target) -> Iterator[TensorLayout]:
    """Every parameter of a model under a checked program."""
    for found in shardings(target, program, "shard"):
        stored = tuple(tuple(axis for axis in split.axes if mesh.total(axis) > 1) for split in found.splits)
        usual = tuple(default_axes(dimension, mesh, set()) for dimension in found.place.tensor.dimensions)
        yield TensorLayout(found.place, usual, stored)


def residual_axes(target: Target, mesh: Mesh) -> tuple[str, ...]:
    """The axes that split the width of the residual stream."""
    found = next(tensor for tensor in target.activations if tensor.name == "residual")
    width = next(dimension for dimension in found.dimensions if dimension.name == WIDTH)
    return default_axes(width, mesh, set())


_READ_BY_DERIVATIVES = 3
"""Tensors of hidden width that a layer keeps beside those of its products (``step_model/activations.py``)."""


@dataclass(frozen=True)
class Undivided:
    """Layers of one stage with such an MLP: its hidden width, the axes that the plan has for it, whether of experts."""

    layers: float
    width: int
    axes: tuple[str, ...]
    routed: bool

    def rows(self, fabric: Fabric) -> float:
        """Tokens of a microbatch on one device; those of experts come once for each expert that they visit."""
        tokens = float(fabric.inputs.tokens_per_microbatch)
        return tokens * float(fabric.inputs.computed_experts) if self.routed else tokens

    def repeated(self, fabric: Fabric) -> float:
        """Share of the hidden activations of a device that other devices hold as well."""
        return 1 - 1 / fabric.degree(self.axes)


def undivided_cost(mlp: Undivided, fabric: Fabric) -> Cost:
    """What it costs more than an MLP that is split as in the plan."""
    inputs, constants = fabric.inputs, fabric.constants
    model, plan = inputs.model, inputs.plan
    into, rows, share = float(model.up_projections), mlp.rows(fabric), mlp.repeated(fabric)
    before = float(communication(inputs, constants).tensor_layer / model.sequential_blocks)
    memory = float(inputs.hardware.hbm_bandwidth * constants.memory_efficiency)
    traffic = ACTIVATION_BYTES * rows * (into + 1) * mlp.width * share * (2 + float(plan.recompute_elementwise))
    products = float(constants.elementwise_traffic) * traffic / memory
    if mlp.routed:
        passes = 1 + BACKWARD_MATMUL + float(plan.recompute_mlp)
        flops = 2 * rows * (into + 1) * mlp.width * float(model.width) * share * passes
        rate = float(inputs.hardware.peak_matmul * constants.matmul_efficiency * constants.grouped_efficiency)
        return Cost(activations=-mlp.layers * before, products=mlp.layers * (products + flops / rate))
    again = min(float(plan.recompute_mlp) * (into + 1) / into, 1.0)
    reductions = into * (1 + again) + 1
    reduced = reductions * fabric.over(mlp.axes).reduce(ACTIVATION_BYTES * rows * mlp.width)
    return Cost(activations=mlp.layers * (reduced - before), products=mlp.layers * products)


def undivided_bytes(mlp: Undivided, fabric: Fabric) -> float:
    """HBM that its activations take more: those of all layers that are kept, and those of one that are in hand."""
    plan, into = fabric.inputs.plan, float(fabric.inputs.model.up_projections)
    kept = float(plan.kept_mlp) * into + float(plan.kept_layer) * (into + _READ_BY_DERIVATIVES)
    tensors = mlp.layers * kept + load_tpu_buffers().hidden
    return ACTIVATION_BYTES * mlp.rows(fabric) * mlp.width * mlp.repeated(fabric) * tensors


_OF_TOKENS = {"replica", "data", "seq", "expert"}


def lookup_cost(vocabulary: tuple[str, ...], embed: tuple[str, ...], fabric: Fabric) -> Cost:
    """Of one lookup and its gradient, by the axes that split the rows and the width of the table."""
    inputs = fabric.inputs
    residual = ACTIVATION_BYTES * float(inputs.tokens_per_microbatch * inputs.model.width)
    tokens = [axis for axis in embed if axis in _OF_TOKENS]
    others = fabric.degree(axis for axis in vocabulary if axis in _OF_TOKENS)
    traded = 2 * fabric.over(tokens).trade(residual)
    return Cost(activations=traded + fabric.over(vocabulary).reduce(residual * others))
