"""What a program costs more than its plan, for the tensors that its lines split otherwise."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from itertools import chain
from typing import NamedTuple

from asap.mapping.coverage import layers_of
from asap.mapping.language.program import Program
from asap.mapping.target import Dimension, Target
from asap.prediction.tensor_splits.cost import Cost
from asap.prediction.tensor_splits.in_parts import in_parts_cost
from asap.prediction.tensor_splits.laid import EXPERTS, HIDDEN, WIDTH, Laid, Mlp, laid_tensors, residual_axes
from asap.prediction.tensor_splits.lookup import lookup_cost
from asap.prediction.tensor_splits.rings import Fabric
from asap.prediction.tensor_splits.storage import Axes, Weight, storage_cost
from asap.prediction.tensor_splits.undivided import Undivided, undivided_bytes, undivided_cost

_FORWARD_AND_BACKWARD = 2


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
    all_laid, residual = tuple(laid_tensors(program, mesh, target)), residual_axes(target, mesh)
    undivided = _undivided(all_laid, fabric)
    for mlp in undivided.values():
        seconds += undivided_cost(mlp, fabric)
        hbm += undivided_bytes(mlp, fabric)
    tied = all(tensor.name != "head" for tensor in target.parameters)
    for laid in all_laid:
        whole_hidden = laid.mlp in undivided
        if laid.stored != laid.usual or whole_hidden:
            seconds += _added(laid, whole_hidden, tied, residual, fabric)
            hbm += _gradient_bytes(laid, laid.stored, fabric) - _gradient_bytes(laid, laid.usual, fabric)
    changed = (laid.place.tensor.name for laid in all_laid if laid.stored != laid.usual)
    return SplitsCost(seconds, hbm, tuple(dict.fromkeys(changed)))


def _added(laid: Laid, whole_hidden: bool, tied: bool, residual: tuple[str, ...], fabric: Fabric) -> Cost:
    """What one tensor costs more; ``tied`` says that the embedding is the head as well."""
    elements, reads = laid.elements(float(fabric.inputs.plan.stages)), _reads(laid, tied)
    looked_up, in_parts = laid.place.tensor.name == "embedding", _is_in_parts(laid, residual)
    by_width = in_parts or (whole_hidden and EXPERTS not in laid.dimensions)
    usual, then = (
        Weight(elements, reads, _worked(laid, wide or (looked_up and not tied), whole, residual))
        for wide, whole in ((False, False), (by_width, whole_hidden))
    )
    found = storage_cost(then, laid.stored, fabric) - storage_cost(usual, laid.usual, fabric)
    if in_parts:
        recomputed = float(fabric.inputs.plan.recompute_qkv) if laid.place.layers else 0.0
        width = laid.place.tensor.dimensions[0].length or 1
        found += in_parts_cost(elements / width, residual, recomputed, fabric)
    if looked_up:
        found += _lookup(laid.stored, fabric) - _lookup(laid.usual, fabric)
    return found


def _gradient_bytes(laid: Laid, axes: Axes, fabric: Fabric) -> float:
    elements = laid.elements(float(fabric.inputs.plan.stages))
    return float(fabric.inputs.workload.gradient_bytes) * elements / fabric.degree(chain(*axes))


def _undivided(all_laid: Sequence[Laid], fabric: Fabric) -> Mapping[Mlp, Undivided]:
    """The MLPs of which no weight splits the hidden dimension as the plan does, from its first axis on: an axis that
    splits the tokens cannot split their hidden activations, nor can those that follow it."""
    weights: dict[Mlp, list[Laid]] = defaultdict(list)
    for laid in all_laid:
        if laid.mlp is not None:
            weights[laid.mlp].append(laid)
    found: dict[Mlp, Undivided] = {}
    for key, group in weights.items():
        place = group[0].dimensions.index(HIDDEN)
        axes, width = group[0].usual[place], group[0].place.tensor.dimensions[place].length or 0
        said = [laid.stored[laid.dimensions.index(HIDDEN)] for laid in group]
        if axes and not any(each[: len(axes)] == axes for each in said):
            layers = len(layers_of(group[0].place)) / float(fabric.inputs.plan.stages)
            found[key] = Undivided(layers, width, axes, routed=key[1])
    return found


def _reads(laid: Laid, tied: bool) -> int:
    """Of the head the products forward and backward follow each other: it is gathered once. Lookups gather nothing."""
    if laid.place.layers is not None:
        return _FORWARD_AND_BACKWARD
    return int(laid.place.tensor.name == "head" or tied)


def _is_in_parts(laid: Laid, residual: tuple[str, ...]) -> bool:
    """Whether a weight sums over its width, and is split along it as the residual stream is from the first axis on; of
    an MLP the hidden dimension says it."""
    sums_over_width = laid.dimensions[:1] == (WIDTH,) and laid.mlp is None and laid.stored != laid.usual
    return sums_over_width and bool(residual) and laid.stored[0][: len(residual)] == residual


def _worked(laid: Laid, by_width: bool, whole_hidden: bool, residual: tuple[str, ...]) -> Axes:
    """The axes over which devices compute with parts of each dimension: those of the plan but for the width, over which
    the plan only stores; ``by_width`` those of the residual stream instead."""

    def axes(dimension: Dimension, usual: tuple[str, ...]) -> tuple[str, ...]:
        if dimension.name == WIDTH:
            return residual if by_width else ()
        return () if by_width or (whole_hidden and dimension.name == HIDDEN) else usual

    return tuple(map(axes, laid.place.tensor.dimensions, laid.usual))


def _lookup(embedding: Axes, fabric: Fabric) -> Cost:
    vocabulary, width = embedding
    return lookup_cost(vocabulary, width, fabric)
