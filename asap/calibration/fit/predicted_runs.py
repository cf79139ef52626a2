"""Published runs as inputs of the step model, and what a fit predicts for them; calibration and backtest share it."""

import math
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from asap.calibration.dataset.runs import PublishedRun
from asap.calibration.dataset.sources import Pairs
from asap.plans import Remat
from asap.prediction.step_model.groups import Groups, allocator_class
from asap.prediction.step_model.inputs import StepInputs
from asap.prediction.step_model.memory import StepMemory, memory
from asap.prediction.step_model.step import predict_step
from asap.prediction.step_model.step_parts import change_between, parts_of_each, stack
from asap.prediction.uncertainty.calibration import Fit, distance_from, doubtful_groups
from asap.prediction.uncertainty.own_runs import Likeness
from asap.prediction.uncertainty.step_interval import Doubts, doubts_of
from asap.prediction.uncertainty.unstated import Mixture, alternatives, mixture_of

Vector = NDArray[np.float64]


@dataclass(frozen=True)
class PredictedRuns:
    """Per run: predicted seconds, of the mixture and of its likeliest reading; those of the parts of that, of shape
    (runs, parts); doubts."""

    step_time: Vector
    likeliest: Vector
    parts: Vector
    doubts: Doubts


def groups_of(run: PublishedRun) -> Groups:
    """The groups of a run."""
    return Groups.of(run.hardware, run.workload, run.fabric)


def likeness_of(run: PublishedRun) -> Likeness:
    """What decides how much a run has in common with others of its source."""
    return Likeness.of(run.architecture, run.workload, run.hardware)


def stacked(runs: Sequence[PublishedRun]) -> StepInputs:
    """The inputs of all runs as arrays of shape (runs,)."""
    return stack([run.inputs for run in runs])


def allocator_of(run: PublishedRun) -> str:
    """The allocator of a run."""
    return allocator_class(run.framework, run.hardware.chip.kind)


def minimum_memory(runs: Sequence[PublishedRun]) -> StepMemory:
    """Modelled bytes of each run; where its policy is inferred, with full recomputation, which needs the least."""
    full = {"remat": Remat.FULL}
    leanest = [replace(run, plan=run.plan.model_copy(update=full)) if run.remat_inferred else run for run in runs]
    return memory(stacked(leanest))


def reserved_bytes(runs: Sequence[PublishedRun], fits: Sequence[Fit]) -> Vector:
    """Bytes of HBM that each run reserves, by its own fit."""
    overheads = [fit.overhead(allocator_of(run)) for run, fit in zip(runs, fits, strict=True)]
    scales = np.transpose([(found.scale, found.reuse) for found in overheads])
    return np.asarray(minimum_memory(runs).reserved(*scales).total)


def predict_runs(runs: Sequence[PublishedRun], fit: Fit) -> PredictedRuns:
    """Predictions of one fit."""
    inputs, groups = stacked(runs), [groups_of(run) for run in runs]
    step = predict_step(inputs, fit.resolve(groups))
    mixture = _mixture(runs, fit, np.log(step.total))
    distance = distance_from(fit.region, inputs)
    doubtful = [
        doubtful_groups(fit.region, group, run.architecture.is_moe) for group, run in zip(groups, runs, strict=True)
    ]
    doubts = doubts_of(inputs, step, distance, doubtful, mixture.spread, [group.framework for group in groups])
    return PredictedRuns(
        step_time=np.asarray(step.total) * np.exp(mixture.shift),
        likeliest=np.asarray(step.total),
        parts=parts_of_each(step),
        doubts={name: np.broadcast_to(value, len(runs)) for name, value in doubts.items()},
    )


def predict_each(runs: Sequence[PublishedRun], fits: Sequence[Fit]) -> PredictedRuns:
    """Predictions for each run by its own fit."""
    columns, parts = {name: np.empty(len(runs)) for name in ("step_time", "likeliest")}, list[Vector]()
    doubts: dict[str, Vector] = defaultdict(lambda: np.zeros(len(runs)))
    order: list[int] = []
    for fit in {id(fit): fit for fit in fits}.values():
        rows = [index for index, own in enumerate(fits) if own is fit]
        predicted = predict_runs([runs[index] for index in rows], fit)
        for name, column in columns.items():
            column[rows] = getattr(predicted, name)
        for name, value in predicted.doubts.items():
            doubts[name][rows] = value
        parts.append(predicted.parts)
        order += rows
    return PredictedRuns(doubts=dict(doubts), parts=np.concatenate(parts)[np.argsort(order)], **columns)


def change_of_pairs(runs: Sequence[PublishedRun], parts: Vector, pairs: Pairs, recomputed: bool = True) -> Vector:
    """How much of a token's step changes between the runs of each pair.

    Args:
        runs: whose batch and sequence are known.
        parts: predicted seconds, of shape (runs, parts).
        pairs: of runs.
        recomputed: whether what is computed again counts.
    """
    each = parts.T / np.array([run.workload.tokens or math.nan for run in runs])
    return np.asarray(change_between(list(each[:, pairs.other]), list(each[:, pairs.known]), recomputed))


def half_widths(predicted: PredictedRuns, fits: Sequence[Fit]) -> Vector:
    """Half-widths of the intervals of ln(measured / predicted), each by its own fit."""
    doubts = predicted.doubts.items()
    return np.array(
        [fit.step_interval.at({name: value[row : row + 1] for name, value in doubts}) for row, fit in enumerate(fits)]
    )


def _mixture(runs: Sequence[PublishedRun], fit: Fit, base: Vector) -> Mixture:
    """What each run may be that it does not say; readings of the same kind are predicted together."""
    others: dict[tuple[str, float], dict[int, PublishedRun]] = defaultdict(dict)
    for row, run in enumerate(runs):
        for other in alternatives([run.plan], [run.remat_inferred], run.workload, run.hardware, run.network_stated):
            (plan,) = other.plans
            read = replace(run, plan=plan, workload=other.workload, hardware=other.hardware)
            if not other.of_memory:
                others[other.setting, other.weight][row] = read
    found = []
    for (setting, weight), readings in others.items():
        rows, value = list(readings), base.copy()
        chosen = list(readings.values())
        value[rows] = np.log(predict_step(stacked(chosen), fit.resolve([groups_of(run) for run in chosen])).total)
        found.append((setting, weight, value))
    return mixture_of(base, found)
