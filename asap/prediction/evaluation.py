"""The step model over many plans of one run, or over a grid of configurations, in one vectorised pass."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from asap.hardware.slices import Slice
from asap.models import Architecture, Workload
from asap.plans import Plan
from asap.plans.validity import Constraints
from asap.prediction.configuration_grid import Array, ConfigurationGrid, Index
from asap.prediction.prediction import FIT_CONFIDENCE
from asap.prediction.step_model.encoding import step_inputs
from asap.prediction.step_model.groups import Groups, allocator_class
from asap.prediction.step_model.inputs import Number, StepInputs
from asap.prediction.step_model.memory import StepMemory, host_memory, memory
from asap.prediction.step_model.step import StepTime, predict_step
from asap.prediction.step_model.step_parts import change_between, step_parts
from asap.prediction.uncertainty.calibration import (
    AllocatorOverhead,
    Fit,
    distance_from,
    doubtful_groups,
    hbm_scatter,
    unseen_groups,
)
from asap.prediction.uncertainty.memory_belief import MemoryBelief
from asap.prediction.uncertainty.residual_kernel import Widths
from asap.prediction.uncertainty.step_interval import Doubts, doubts_of
from asap.prediction.uncertainty.unstated import Mixture, alternatives, mixture_of

Vector = NDArray[np.float64]


@dataclass(frozen=True)
class Evaluation:
    """Of each plan step time (s), memory, its scatter and odds to fit, host memory (bytes), distance from the region,
    what is not said, doubts, half-width of the interval: arrays of shape (plans,), or of one value for all. ``risks``
    are readings of what is not said: the setting, bytes, and the odds to fit that they cost."""

    plans: tuple[Plan, ...]
    inputs: StepInputs
    step: StepTime
    memory: StepMemory
    overhead: AllocatorOverhead
    scatter: Vector
    fit_odds: Vector
    risks: tuple[tuple[str, Vector, Vector], ...]
    on_host: Vector
    distance: Vector
    mixture: Mixture
    doubts: Doubts
    half_width: Vector
    told_by: Mapping[str, str]
    fit: Fit

    @property
    def capacity(self) -> float:
        """HBM of one device, bytes."""
        return float(np.max(self.inputs.hardware.hbm_bytes))


def evaluate_plans(
    plans: Sequence[Plan],
    architecture: Architecture,
    workload: Workload,
    hardware: Slice,
    fit: Fit,
    fabric: str | None = None,
    inferred: Sequence[bool] = (),
) -> Evaluation:
    """Evaluate plans that have a rematerialisation policy.

    Args:
        plans: plans for the devices of ``hardware``.
        architecture: complete.
        workload: batch and sequence known.
        hardware: chips and topology.
        fit: constants and residuals.
        fabric: kind of the network between nodes, where it is not the usual one.
        inferred: for each plan, whether its policy is inferred; by default all are stated.
    """
    inputs = step_inputs(plans, architecture, workload, hardware)
    groups = Groups.of(hardware, workload, fabric)
    overhead = fit.overhead(allocator_class(workload.framework, hardware.chip.kind))
    step, cases = predict_step(inputs, fit.resolve_one(groups)), (len(plans),)
    others = alternatives(plans, inferred or [False] * len(plans), workload, hardware, model=architecture)
    base, read, risks = np.broadcast_to(np.log(step.total), cases), [], []
    capacity, reserved = np.max(inputs.hardware.hbm_bytes), memory(inputs).reserved(overhead.scale, overhead.reuse)
    distance = distance_from(fit.region, inputs)
    doubtful = doubtful_groups(fit.region, groups, architecture.is_moe, bool(workload.adapter_rank))
    scatter = np.broadcast_to(hbm_scatter(distance, doubtful), cases)
    odds = mixed = overhead.probability_fits(np.broadcast_to(reserved.total, cases), capacity, scatter)
    for other in others:
        read_so = step_inputs(other.plans, other.model or architecture, other.workload, other.hardware)
        if not other.of_memory:
            total = predict_step(read_so, fit.resolve_one(groups)).total
            read.append((other.setting, other.weight, np.broadcast_to(np.log(total), cases)))
            continue
        held = np.broadcast_to(memory(read_so).reserved(overhead.scale, overhead.reuse).total, cases)
        costs = odds - overhead.probability_fits(held, capacity, scatter)
        mixed = mixed - other.weight * costs
        risks.append((other.setting, held, costs))
    mixture = mixture_of(base, read)
    doubts = doubts_of(inputs, step, distance, [doubtful], mixture.spread, [groups.framework])
    return Evaluation(
        plans=tuple(plans),
        inputs=inputs,
        step=step,
        memory=reserved,
        overhead=overhead,
        scatter=scatter,
        fit_odds=np.clip(mixed, 0.0, 1.0),
        risks=tuple(risks),
        on_host=np.broadcast_to(host_memory(inputs), cases),
        distance=np.broadcast_to(distance + len(unseen_groups(fit.region, groups)), cases),
        mixture=mixture,
        doubts=doubts,
        half_width=np.broadcast_to(fit.step_interval.at_each(doubts), cases),
        told_by={other.setting: other.told_by for other in others},
        fit=fit,
    )


CHUNK = 256
"""Meshes evaluated at once: arrays of this length stay in the processor's caches."""


@dataclass(frozen=True)
class GridEvaluation:
    """Arrays over the grid.

    Args:
        grid: the configurations.
        gain: ``ln`` of how many times faster than the incumbent, for as many tokens.
        change: how much of the step changes (:func:`change_between`).
        widths: of the 90 % interval of ``gain``, by ``change``.
        hbm: reserved bytes of the fullest device.
        fits: whether they are within its HBM, or what a measured incumbent has shown to fit, and within host memory.
        fit_odds: the probability that they are within its HBM.
        valid: whether the configuration can run at all.
    """

    grid: ConfigurationGrid
    gain: Array
    change: Array
    widths: Widths
    hbm: Array
    fits: NDArray[np.bool_]
    fit_odds: Array
    valid: NDArray[np.bool_]

    @property
    def present(self) -> Index:
        """The place of the incumbent."""
        return (0,) * len(self.grid.shape)

    def half_width(self, places: tuple[NDArray[np.int64], ...]) -> NDArray[np.float64]:
        """Half the 90 % interval of ``gain`` at some places, an index array for each axis."""
        another = np.any(np.stack(places) != 0, axis=0)
        return np.where(another, self.widths.at_each(self.change[places]), 0.0)


def evaluate_grid(
    grid: ConfigurationGrid,
    architecture: Architecture,
    workload: Workload,
    hardware: Slice,
    constraints: Constraints,
    fit: Fit,
    measured: float | None = None,
    belief: MemoryBelief | None = None,
) -> GridEvaluation:
    """Evaluate every configuration.

    Args:
        grid: the configurations.
        architecture: complete.
        workload: batch and sequence known.
        hardware: chips and topology.
        constraints: what limits a plan.
        fit: constants and residuals.
        measured: step time of the incumbent, seconds.
        belief: of HBM, after what came of other plans.
    """
    groups = Groups.of(hardware, workload)
    constants = fit.resolve_one(groups)
    doubtful = doubtful_groups(fit.region, groups, architecture.is_moe, bool(workload.adapter_rank))
    overhead = fit.overhead(allocator_class(workload.framework, hardware.chip.kind))
    inputs, meshes = grid.inputs(architecture, workload, hardware), len(grid.meshes)
    sequences, now = grid.sequences.T, list[float]()
    seconds, changed, moved, held, on_host, scattered = [], [], [], [], [], []
    for start in range(0, meshes, CHUNK):
        rows = slice(start, min(start + CHUNK, meshes))
        part = _at_meshes(inputs, rows, meshes)
        step = predict_step(part, constants)
        parts = [value / sequences for value in step_parts(step)]
        now = now or [float(value.flat[0]) for value in parts]
        seconds.append(_over_meshes(step.total, rows))
        changed.append(_over_meshes(change_between(parts, now), rows))
        moved.append(_over_meshes(change_between(parts, now, recomputed=False), rows))
        held.append(_over_meshes(memory(part).reserved(overhead.scale, overhead.reuse).total, rows))
        on_host.append(_over_meshes(host_memory(part), rows))
        scattered.append(_over_meshes(hbm_scatter(distance_from(fit.region, part), doubtful), rows))
    total, hbm = np.log(np.concatenate(seconds, axis=-1)).T, np.concatenate(held, axis=-1).T
    fits_host = (np.concatenate(on_host, axis=-1) <= inputs.hardware.host_bytes).T
    present = (0,) * len(grid.shape)
    before = total[present]
    larger, change = np.log(grid.sequences / grid.batch), np.concatenate(changed, axis=-1).T
    gain, widths = before - total + larger, fit.ratio_widths.of(architecture.is_moe)
    if measured:
        missed = math.log(measured) - float(before)
        gain = missed + before - total + larger
        gain = gain - fit.residual_transfer.expected(missed, np.concatenate(moved, axis=-1).T)
        widths = fit.anchored_widths.of(architecture.is_moe)
    capacity = hardware.chip.device_capacity
    died = belief is not None and any(one.fitted is False and one.held <= hbm[present] for one in belief.seen)
    shown = float(hbm[present]) if measured and not died else 0.0
    scatter = np.concatenate(scattered, axis=-1).T
    odds = overhead.probability_fits(hbm, capacity, scatter) if belief is None else belief.probability_fits(hbm)
    within, ran = hbm <= capacity if belief is None else odds >= FIT_CONFIDENCE, hbm <= shown
    return GridEvaluation(
        grid=grid,
        gain=np.broadcast_to(gain, grid.shape),
        change=np.broadcast_to(change, grid.shape),
        widths=widths,
        hbm=np.broadcast_to(hbm, grid.shape),
        fits=np.broadcast_to((within | ran) & fits_host, grid.shape),
        fit_odds=np.broadcast_to(np.where(ran, 1.0, odds), grid.shape),
        valid=grid.valid(constraints),
    )


def _at_meshes(inputs: StepInputs, rows: slice, meshes: int) -> StepInputs:
    """The numbers of some meshes, which are the last axis here: the innermost loop is then a long one."""

    def part(numbers: Any) -> Any:
        values = {field.name: getattr(numbers, field.name) for field in fields(numbers)}
        arrays = {name: value for name, value in values.items() if isinstance(value, np.ndarray)}
        return replace(numbers, **{name: (v[rows] if len(v) == meshes else v).T for name, v in arrays.items()})

    return StepInputs(inputs.model, part(inputs.workload), inputs.hardware, part(inputs.plan))


def _over_meshes(value: Number, rows: slice) -> Array:
    """The array with the axis of meshes, the last one, at its full length."""
    array = np.asarray(value, dtype=float)
    return np.broadcast_to(array, (*array.shape[:-1], rows.stop - rows.start))
