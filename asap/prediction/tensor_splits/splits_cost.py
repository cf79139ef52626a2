"""What a program costs more than its plan, for the tensors that its lines split otherwise."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from itertools import chain
from typing import NamedTuple

from asap.mapping.coverage import Dimension, Target, layers_of
from asap.mapping.language.program import Program
from asap.prediction.tensor_splits.cost import Cost, Fabric, in_parts_cost
from asap.prediction.tensor_splits.layouts import (
    EXPERTS,
    HIDDEN,
    WIDTH,
    Axes,
    Mlp,
    TensorLayout,
    Undivided,
    Weight,
    lookup_cost,
    residual_axes,
    storage_cost,
    tensor_layouts,
    undivided_bytes,
    undivided_cost,
)

_FORWARD_AND_BACKWARD = 2  # in both, weights of a layer are gathered


class SplitsCost(NamedTuple):
    """Seconds, bytes of gradients and activations in HBM, and the tensors that lie otherwise than under the plan."""

    seconds: Cost
    hbm: float
    tensors: tuple[str, ...]


def splits_cost(program: Program, target: Target, fabric: Fabric) -> SplitsCost:
    """What it costs more than the plan that the lines of a checked program split tensors as they do.

    Args:
        program: of the mapping language, with a mesh.
        target: the model.
        fabric: of the program's plan.
    """
    seconds, hbm, mesh = Cost(), 0.0, program.mesh
    if mesh is None:
        return SplitsCost(seconds, hbm, ())
    layouts, residual = tuple(tensor_layouts(program, mesh, target)), residual_axes(target, mesh)
    undivided = _undivided(layouts, fabric)
    for mlp in undivided.values():
        seconds += undivided_cost(mlp, fabric)
        hbm += undivided_bytes(mlp, fabric)
    tied = all(tensor.name != "head" for tensor in target.parameters)
    for layout in layouts:
        whole_hidden = layout.mlp in undivided
        if layout.stored != layout.usual or whole_hidden:
            seconds += _added(layout, whole_hidden, tied, residual, fabric)
            hbm += _gradient_bytes(layout, layout.stored, fabric) - _gradient_bytes(layout, layout.usual, fabric)
    changed = (layout.place.tensor.name for layout in layouts if layout.stored != layout.usual)
    return SplitsCost(seconds, hbm, tuple(dict.fromkeys(changed)))


def _added(layout: TensorLayout, whole_hidden: bool, tied: bool, residual: tuple[str, ...], fabric: Fabric) -> Cost:
    """What one tensor costs more; ``tied`` says that the embedding is the head as well."""
    elements, reads = layout.elements(float(fabric.inputs.plan.stages)), _reads(layout, tied)
    looked_up, in_parts = layout.place.tensor.name == "embedding", _is_in_parts(layout, residual)
    by_width = in_parts or (whole_hidden and EXPERTS not in layout.dimensions)
    usual, then = (
        Weight(elements, reads, _worked(layout, wide or (looked_up and not tied), whole, residual))
        for wide, whole in ((False, False), (by_width, whole_hidden))
    )
    found = storage_cost(then, layout.stored, fabric) - storage_cost(usual, layout.usual, fabric)
    if in_parts:
        recomputed = float(fabric.inputs.plan.recompute_qkv) if layout.place.layers else 0.0
        width = layout.place.tensor.dimensions[0].length or 1
        found += in_parts_cost(elements / width, residual, recomputed, fabric)
    if looked_up:
        found += _lookup(layout.stored, fabric) - _lookup(layout.usual, fabric)
    return found


def _gradient_bytes(layout: TensorLayout, axes: Axes, fabric: Fabric) -> float:
    elements = layout.elements(float(fabric.inputs.plan.stages))
    return float(fabric.inputs.workload.gradient_bytes) * elements / fabric.degree(chain(*axes))


def _undivided(layouts: Sequence[TensorLayout], fabric: Fabric) -> Mapping[Mlp, Undivided]:
    """The MLPs of which no weight splits the hidden dimension as the plan does, from its first axis on: an axis that
    splits the tokens cannot split their hidden activations, nor can those that follow it."""
    weights: dict[Mlp, list[TensorLayout]] = defaultdict(list)
    for layout in layouts:
        if layout.mlp is not None:
            weights[layout.mlp].append(layout)
    found: dict[Mlp, Undivided] = {}
    for key, group in weights.items():
        place = group[0].dimensions.index(HIDDEN)
        axes, width = group[0].usual[place], group[0].place.tensor.dimensions[place].length or 0
        said = [layout.stored[layout.dimensions.index(HIDDEN)] for layout in group]
        if axes and not any(each[: len(axes)] == axes for each in said):
            layers = len(layers_of(group[0].place)) / float(fabric.inputs.plan.stages)
            found[key] = Undivided(layers, width, axes, routed=key[1])
    return found


def _reads(layout: TensorLayout, tied: bool) -> int:
    """Of the head the products forward and backward follow each other: it is gathered once. Lookups gather nothing."""
    if layout.place.layers is not None:
        return _FORWARD_AND_BACKWARD
    return int(layout.place.tensor.name == "head" or tied)


def _is_in_parts(layout: TensorLayout, residual: tuple[str, ...]) -> bool:
    """Whether a weight sums over its width, and is split along it as the residual stream is from the first axis on; of
    an MLP the hidden dimension says it."""
    sums_over_width = layout.dimensions[:1] == (WIDTH,) and layout.mlp is None and layout.stored != layout.usual
    return sums_over_width and bool(residual) and layout.stored[0][: len(residual)] == residual


def _worked(layout: TensorLayout, by_width: bool, whole_hidden: bool, residual: tuple[str, ...]) -> Axes:
    """The axes over which devices compute with parts of each dimension: those of the plan but for the width, over which
    the plan only stores; ``by_width`` those of the residual stream instead."""

    def axes(dimension: Dimension, usual: tuple[str, ...]) -> tuple[str, ...]:
        if dimension.name == WIDTH:
            return residual if by_width else ()
        return () if by_width or (whole_hidden and dimension.name == HIDDEN) else usual

    return tuple(map(axes, layout.place.tensor.dimensions, layout.usual))


def _lookup(embedding: Axes, fabric: Fabric) -> Cost:
    vocabulary, width = embedding
    return lookup_cost(vocabulary, width, fabric)
