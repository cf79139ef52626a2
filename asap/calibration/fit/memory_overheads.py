"""Memory beside what is modelled: of allocators, from published runs, and of XLA, from compiled programs."""

from collections import Counter, defaultdict
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from asap.calibration.dataset.rows import CompiledProgram
from asap.calibration.dataset.runs import PublishedRun
from asap.calibration.fit.predicted_runs import allocator_of, minimum_memory, stacked
from asap.prediction.prediction import FIT_CONFIDENCE
from asap.prediction.step_model.encoding import step_inputs
from asap.prediction.step_model.groups import EXPANDABLE
from asap.prediction.step_model.inputs import StepInputs
from asap.prediction.step_model.memory import StepMemory, memory
from asap.prediction.step_model.step_parts import stack
from asap.prediction.step_model.tpu_memory import FittedBuffers, HbmScore, TpuBuffers
from asap.prediction.uncertainty.calibration import AllocatorOverhead

Vector = NDArray[np.float64]

LOW, HIGH = 0.05, 0.95  # quantiles of a 90 % interval
SOURCE_POWER = 0.3  # n runs of a source weigh as n ** 0.3 independent ones; judgement: odds to fit
POINTS = 7  # of the grid, along each axis; judgement: only the time of the fit
REACH = 3  # half-width of the grid, in standard deviations of the prior

# Logarithms: where scale, reuse and the scale of the logistic distribution start, and how far they may go.
START = np.array([0.0, 0.3, np.log(0.08)])
SPREAD = np.array([0.1, 0.3, 0.5])  # half-normal; judgement: odds to fit of allocators with few runs


def fit_allocator_overheads(runs: Sequence[PublishedRun]) -> dict[str, AllocatorOverhead]:
    """The overhead of each allocator that best separates runs that fitted from runs that did not.

    What a TPU holds is fitted to what its compiler allocates, so published runs do not lower it. Expandable segments
    follow PyTorch's other runs (:meth:`Fit.overhead`).
    """
    by_allocator: dict[str, list[PublishedRun]] = defaultdict(list)
    for run in runs:
        by_allocator[allocator_of(run)].append(run)
    by_allocator.pop(EXPANDABLE, None)
    found = {allocator: _fit_one(own) for allocator, own in sorted(by_allocator.items())}
    if (planned := found.get("tpu")) is not None:
        found["tpu"] = planned.model_copy(update={"scale": max(planned.scale, 1.0)})
    return found


def _fit_one(runs: Sequence[PublishedRun]) -> AllocatorOverhead:
    from scipy.optimize import brute, fmin

    modelled = minimum_memory(runs)
    limit = np.asarray(stacked(runs).hardware.hbm_bytes)
    out_of_memory = np.array([run.out_of_memory for run in runs])
    held = np.array([run.memory_bytes or 0.0 for run in runs])
    counts = Counter(run.source for run in runs)
    weights = np.array([counts[run.source] ** (SOURCE_POWER - 1) for run in runs])

    def loss(theta: Vector) -> float:
        return float(
            (weights * _negative_log_likelihood(theta, modelled, limit, out_of_memory, held)).sum() + _prior(theta)
        )

    ranges = tuple(zip(START - REACH * SPREAD, START + REACH * SPREAD, strict=True))
    scale, reuse, width = np.exp(brute(loss, ranges, Ns=POINTS, finish=fmin))
    return AllocatorOverhead(
        scale=round(float(scale * np.exp(width * _logit(FIT_CONFIDENCE))), 3),
        reuse=round(float(reuse), 3),
        low=round(float(np.exp(width * (_logit(LOW) - _logit(FIT_CONFIDENCE)))), 3),
        high=round(float(np.exp(width * (_logit(HIGH) - _logit(FIT_CONFIDENCE)))), 3),
    )


def _negative_log_likelihood(
    theta: Vector, modelled: StepMemory, limit: Vector, out_of_memory: NDArray[np.bool_], held: Vector
) -> Vector:
    """Of each run; a run with a published peak has a density, the others a probability."""
    width = np.exp(theta[2])
    median = np.log(modelled.reserved(*np.exp(theta[:2])).total)
    free = (np.log(limit) - median) / width
    off = (np.log(np.where(held > 0, held, limit)) - median) / width
    density = off + 2 * np.logaddexp(0.0, -off) + theta[2]
    return np.where(held > 0, density, np.logaddexp(0.0, np.where(out_of_memory, free, -free)))


def _prior(theta: Vector) -> float:
    return float((((theta - START) / SPREAD) ** 2).sum() / 2)


def _logit(share: float) -> float:
    return float(np.log(share / (1 - share)))


NAMES = tuple(TpuBuffers.model_fields)
BUFFERS_START = np.array([getattr(TpuBuffers(), name) for name in NAMES])
BUFFERS_SPREAD = 1.0
"""E-folds that a number may move at the price of one program. Judgement: buffers that few programs show."""
TOLERANCE = 0.05
"""Residual of ln(modelled / compiled) from which a program counts less than its square. Judgement: buffers."""


def fit_tpu_buffers(programs: Sequence[CompiledProgram]) -> FittedBuffers:
    """Fit to the models that are not kept out, and score both kinds."""
    from scipy.optimize import least_squares

    fitted = [program for program in programs if not program.kept_out]
    inputs, compiled = _inputs(fitted), _compiled(fitted)

    def residuals(theta: Vector) -> Vector:
        modelled = np.asarray(memory(inputs, _buffers(theta)).total)
        return np.append(np.log(modelled / compiled) / TOLERANCE, theta / BUFFERS_SPREAD)

    found = _buffers(least_squares(residuals, np.zeros(len(NAMES)), loss="soft_l1").x)
    buffers = TpuBuffers(**{name: round(value, 3) for name, value in found.model_dump().items()})
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
    return TpuBuffers(**dict(zip(NAMES, (BUFFERS_START * np.exp(theta)).tolist(), strict=True)))
