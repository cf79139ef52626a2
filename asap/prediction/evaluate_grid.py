"""The step model over a whole grid of configurations: gain, its doubt, HBM, and what fits."""

import math
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from asap.hardware.slices import Slice
from asap.models import Architecture, Workload
from asap.plans.validity import Constraints
from asap.prediction.configuration_grid import Array, ConfigurationGrid, Index
from asap.prediction.step_model.groups import Groups, allocator_class
from asap.prediction.step_model.inputs import Number
from asap.prediction.step_model.memory import memory
from asap.prediction.step_model.step import predict_step
from asap.prediction.uncertainty.calibration import Fit

CHUNK = 64
"""Meshes evaluated at once: arrays of this length stay in the processor's caches."""


@dataclass(frozen=True)
class GridEvaluation:
    """Arrays over the grid.

    Args:
        grid: the configurations.
        gain: ``ln`` of how many times faster than the incumbent.
        half_width: half the 90 % interval of ``gain``.
        hbm: reserved bytes of the fullest device.
        fits: whether they are within its HBM, or within what a measured incumbent has shown to fit.
        valid: whether the configuration can run at all.
    """

    grid: ConfigurationGrid
    gain: Array
    half_width: Array
    hbm: Array
    fits: NDArray[np.bool_]
    valid: NDArray[np.bool_]

    @property
    def present(self) -> Index:
        """The place of the incumbent."""
        return (0,) * len(self.grid.shape)


def evaluate_grid(
    grid: ConfigurationGrid,
    architecture: Architecture,
    workload: Workload,
    hardware: Slice,
    constraints: Constraints,
    fit: Fit,
    measured: float | None = None,
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
    """
    constants = fit.resolve_one(Groups.of(hardware, workload))
    overhead = fit.overhead(allocator_class(workload.framework, hardware.chip.kind))
    seconds, held = [], []
    for start in range(0, len(grid.meshes), CHUNK):
        part = replace(grid, meshes=grid.meshes[start : start + CHUNK])
        inputs = part.inputs(architecture, workload, hardware)
        seconds.append(_at_meshes(predict_step(inputs, constants).total, part))
        held.append(_at_meshes(memory(inputs).reserved(overhead.scale, overhead.reuse).total, part))
    total, hbm = np.log(np.concatenate(seconds)), np.concatenate(held)
    present = (0,) * len(grid.shape)
    before, distance = total[present], grid.distance
    gain, widths = before - total, fit.ratio_widths
    if measured:
        missed = math.log(measured) - float(before)
        gain = missed + before - total - fit.residual_transfer.expected(missed, distance)
        widths = fit.anchored_widths
    capacity = hardware.chip.hbm_bytes / hardware.chip.devices
    return GridEvaluation(
        grid=grid,
        gain=np.broadcast_to(gain, grid.shape),
        half_width=np.broadcast_to(np.where(distance == 0, 0.0, widths.at_each(distance)), grid.shape),
        hbm=np.broadcast_to(hbm, grid.shape),
        fits=np.broadcast_to(hbm <= (max(capacity, float(hbm[present])) if measured else capacity), grid.shape),
        valid=grid.valid(constraints),
    )


def _at_meshes(value: Number, grid: ConfigurationGrid) -> Array:
    """The array with the axis of meshes at its full length."""
    array = np.asarray(value, dtype=float)
    array = array.reshape((1,) * (len(grid.shape) - array.ndim) + array.shape)
    return np.broadcast_to(array, (len(grid.meshes), *array.shape[1:]))
