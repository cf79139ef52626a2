"""What it costs that a weight lies split over some axes, and is worked with split over others.

Each device works with a part of the weight for some of the tokens. What lies elsewhere is gathered before a product,
and its gradient scattered ("How to Scale Your Model", chapter 5); what has copies reduces its gradients. XLA updates
the state where the gradients lie. If it is kept in larger parts, weights and moments are gathered afterwards: so it
compiles a head that is split over no tensor axis.
"""

from dataclasses import dataclass
from itertools import chain

from asap.prediction.step_model.compute import ACTIVATION_BYTES
from asap.prediction.tensor_splits.cost import Cost
from asap.prediction.tensor_splits.rings import Fabric

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
    copies = _token_axes(fabric) - worked - kept
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


def _token_axes(fabric: Fabric) -> set[str]:
    return {axis for axis in ("replica", "data", "seq", "expert", "model") if fabric.degree((axis,)) > 1}
