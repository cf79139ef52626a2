"""Published runs as inputs of the step model, and what a fit predicts for them; calibration and backtest share it."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from asap.calibration.dataset.runs import PublishedRun
from asap.plans import Remat
from asap.prediction.step_model.encoding import step_inputs
from asap.prediction.step_model.groups import Groups, allocator_class
from asap.prediction.step_model.inputs import StepInputs, stack
from asap.prediction.step_model.memory import StepMemory, memory
from asap.prediction.step_model.step import predict_step
from asap.prediction.uncertainty.calibration import Fit
from asap.prediction.uncertainty.region import distance_from, unseen_groups

Vector = NDArray[np.float64]


@dataclass(frozen=True)
class PredictedRuns:
    """Per run: predicted seconds, distance from the fit's region, reserved bytes, HBM bytes of a device."""

    step_time: Vector
    distance: Vector
    memory_bytes: Vector
    hbm_bytes: Vector


def groups_of(run: PublishedRun) -> Groups:
    """The groups of a run."""
    return Groups.of(run.hardware, run.workload, run.fabric)


def stacked(runs: Sequence[PublishedRun]) -> StepInputs:
    """The inputs of all runs as arrays of shape (runs,)."""
    return stack([step_inputs([run.plan], run.architecture, run.workload, run.hardware) for run in runs])


def allocator_of(run: PublishedRun) -> str:
    """The allocator of a run."""
    return allocator_class(run.framework, run.hardware.chip.kind)


def minimum_memory(runs: Sequence[PublishedRun]) -> StepMemory:
    """Modelled bytes of each run; where its policy is inferred, with full recomputation, which needs the least."""
    full = {"remat": Remat.FULL}
    leanest = [replace(run, plan=run.plan.model_copy(update=full)) if run.remat_inferred else run for run in runs]
    return memory(stacked(leanest))


def predict_runs(inputs: StepInputs, runs: Sequence[PublishedRun], fit: Fit) -> PredictedRuns:
    """Predictions of one fit. ``inputs`` are the stacked inputs of the runs."""
    groups = [groups_of(run) for run in runs]
    overheads = [(found.scale, found.reuse) for found in (fit.overhead(allocator_of(run)) for run in runs)]
    unseen = np.array([unseen_groups(fit.region, group) for group in groups])
    return PredictedRuns(
        step_time=np.asarray(predict_step(inputs, fit.resolve(groups)).total),
        distance=np.asarray(distance_from(fit.region, inputs, unseen)),
        memory_bytes=np.asarray(minimum_memory(runs).reserved(*np.transpose(overheads)).total),
        hbm_bytes=np.asarray(inputs.hardware.hbm_bytes),
    )


def predict_each(runs: Sequence[PublishedRun], fits: Sequence[Fit]) -> PredictedRuns:
    """Predictions for each run by its own fit."""
    columns = {name: np.empty(len(runs)) for name in ("step_time", "distance", "memory_bytes", "hbm_bytes")}
    for fit in {id(fit): fit for fit in fits}.values():
        rows = [index for index, own in enumerate(fits) if own is fit]
        chosen = [runs[index] for index in rows]
        predicted = predict_runs(stacked(chosen), chosen, fit)
        for name, column in columns.items():
            column[rows] = getattr(predicted, name)
    return PredictedRuns(**columns)
