"""How many tensors of each width XLA holds, fitted to the memory that the TPU compiler plans for whole programs."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from asap.calibration.dataset.rows import CompiledProgram
from asap.prediction.step_model.encoding import step_inputs
from asap.prediction.step_model.inputs import StepInputs
from asap.prediction.step_model.memory import memory
from asap.prediction.step_model.step_parts import stack
from asap.prediction.step_model.tpu_memory import FittedBuffers, HbmScore, TpuBuffers

Vector = NDArray[np.float64]

NAMES = tuple(TpuBuffers.model_fields)
START = np.array([getattr(TpuBuffers(), name) for name in NAMES])
SPREAD = 1.0
"""How far a number may move from where it starts, in e-folds, at the price of one program."""
TOLERANCE = 0.05
"""Residual of ln(modelled / compiled) from which a program counts less than its square."""


def fit_tpu_buffers(programs: Sequence[CompiledProgram]) -> FittedBuffers:
    """Fit to the models that are not kept out, and score both kinds."""
    from scipy.optimize import least_squares

    fitted = [program for program in programs if not program.kept_out]
    inputs, compiled = _inputs(fitted), _compiled(fitted)

    def residuals(theta: Vector) -> Vector:
        modelled = np.asarray(memory(inputs, _buffers(theta)).total)
        return np.append(np.log(modelled / compiled) / TOLERANCE, theta / SPREAD)

    buffers = _rounded(_buffers(least_squares(residuals, np.zeros(len(NAMES)), loss="soft_l1").x))
    return FittedBuffers(
        compilers=tuple(sorted({program.compiler for program in programs})),
        fitted=score_hbm(fitted, buffers),
        kept_out=score_hbm([program for program in programs if program.kept_out], buffers),
        buffers=buffers,
    )


def score_hbm(programs: Sequence[CompiledProgram], buffers: TpuBuffers | None = None) -> HbmScore:
    """Modelled HBM against compiled; by default with the numbers that come with this version."""
    if not programs:
        return HbmScore(programs=0)
    inputs, compiled = _inputs(programs), _compiled(programs)
    modelled, capacity = np.asarray(memory(inputs, buffers).total), np.asarray(inputs.hardware.hbm_bytes)
    errors = np.abs(modelled / compiled - 1)
    return HbmScore(
        programs=len(programs),
        median_error=round(float(np.median(errors)), 4),
        p90_error=round(float(np.quantile(errors, 0.9)), 4),
        wrong_verdicts=round(float(np.mean((modelled <= capacity) != (compiled <= capacity))), 4),
    )


def _inputs(programs: Sequence[CompiledProgram]) -> StepInputs:
    """The inputs of all programs as arrays of shape (programs,)."""
    return stack([step_inputs([one.plan], one.architecture, one.workload, one.hardware) for one in programs])


def _compiled(programs: Sequence[CompiledProgram]) -> Vector:
    return np.array([program.needed_bytes for program in programs])


def _buffers(theta: Vector) -> TpuBuffers:
    return TpuBuffers(**dict(zip(NAMES, (START * np.exp(theta)).tolist(), strict=True)))


def _rounded(buffers: TpuBuffers) -> TpuBuffers:
    return TpuBuffers(**{name: round(value, 3) for name, value in buffers.model_dump().items()})
