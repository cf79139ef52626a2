"""Duty cycle, idle and input shares, communication: put together with the step time."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from statistics import median

from asap.core.text import plain
from asap.core.units import PERCENT
from asap.profiles.operations import Steps, collectives_of
from asap.profiles.profile import Gap, Kpis, Operation
from asap.profiles.xprof.tables import StepRow, Summary
from asap.stacks.registry import spec


@dataclass(frozen=True)
class Busy:
    """Shares of the time of a device, 0 to 1; ``None`` is unknown."""

    duty_cycle: float | None = None
    idle: float | None = None
    input: float | None = None


def tpu_busy(summary: Summary, operations: Sequence[Operation], steps: Steps | None) -> Busy:
    """XProf's percentages; the infeed share needs steps."""
    idle = _share(summary.device_idle_time_percent)
    return Busy(
        duty_cycle=_share(summary.device_duty_cycle_percent),
        idle=_unused(operations) if idle is None else idle,
        input=_share(summary.infeed_percent_average) if steps else None,
    )


def gpu_busy(rows: Sequence[StepRow], operations: Sequence[Operation]) -> Busy:
    """The parts of the marked steps; without steps what no operation uses is idle."""
    total = sum(row.duration or 0.0 for row in rows)
    if not total:
        return Busy(idle=_unused(operations))
    device = sum(row.compute + row.copies + row.collectives for row in rows) / total
    waits = sum(row.infeed + row.host + row.launch for row in rows) / total
    return Busy(duty_cycle=device, idle=max(1.0 - device - waits, 0.0), input=waits)


def kpis_from(steps: Steps | None, busy: Busy, operations: Sequence[Operation]) -> Kpis:
    """Put the KPIs together; without operations communication is unknown, not zero."""
    return Kpis(
        step_time_s=steps.mean if steps else None, step_time_min_s=steps.least if steps else None,
        step_time_max_s=steps.most if steps else None, step_time_stddev_s=steps.deviation if steps else None,
        steps=steps.count if steps else None, duty_cycle=busy.duty_cycle, idle=busy.idle, input=busy.input,
        communication=sum(op.fraction for op in operations if op.is_collective) if operations else None,
        collectives=collectives_of(operations),
    )  # fmt: skip


def _share(percent: float | None) -> float | None:
    return None if percent is None else percent / PERCENT


def _unused(operations: Sequence[Operation]) -> float | None:
    """Share of the window in which nothing ran; unknown where operations overlap and fill more than it."""
    used = sum(operation.fraction for operation in operations)
    return 1.0 - used if operations and used <= 1.0 else None


JAX_TRACE = "jax.profiler.trace(log_dir) around a few steps"
_TABLE = spec("maxtext")
BY_SETTINGS = f"{_TABLE.name}: {_TABLE.capture}"
NO_PROFILE = Gap(what="operations with their FLOPs, bytes and bounds", capture=_TABLE.capture)

STEP_MARKERS = Gap(
    what="where a step begins and ends: none is marked",
    capture=f"jax.profiler.StepTraceAnnotation('train', step_num=n) around each step; {BY_SETTINGS}",
)
COSTS = Gap(
    what="FLOPs, bytes and bounds of operations: XProf has none for a CPU",
    capture=f"{JAX_TRACE}, on a TPU or GPU; {BY_SETTINGS}",
)
HLO = Gap(
    what="HLO operations with FLOPs, bytes and bounds: the profile holds GPU kernels only",
    capture=f"{JAX_TRACE}, of a program that XLA compiled (TensorFlow: tf.function(jit_compile=True)); {BY_SETTINGS}",
)
CUDA_GRAPHS = Gap(
    what="FLOPs and bytes of operations: they ran inside of CUDA graphs, of which a profile holds the kernels only",
    capture="XLA_FLAGS=--xla_gpu_enable_command_buffer= for the profiled steps",
)
OPERATIONS = Gap(
    what="operations: no device ran anything while it was recorded, or its part of the file is missing",
    capture=f"{JAX_TRACE}, once compilation is over; {BY_SETTINGS}",
)
MEMORY = Gap(
    what="use of HBM: no allocation was recorded",
    capture="jax.profiler.trace(log_dir) with the host tracer on (ProfileOptions.host_tracer_level=2)",
)
NO_HOST = "The profile has no host plane: the end of the file is missing, or the host tracer was off."
OVERLAP = "On GPUs collectives and copies run beside computation: their share of the time is not all waiting."
NO_BACKWARD_PASS = "No name speaks of a backward pass or an optimizer: this may not be training."
NOT_TRAINING = f"No step is marked. {NO_BACKWARD_PASS}"

_TRAINING = re.compile(r"transpose\(|(?<![a-z])(?:grad|backward|backprop|optimi[sz]er|adam|train)", re.IGNORECASE)


_START_UP = 2.0
"""A first step that takes more times the usual one after it holds compilation, first transfers, what is tried out."""


def start_up(lengths: Sequence[float]) -> int:
    """How many first steps hold the start-up of the job, by the lengths of all; two are left at least."""
    usual = [place for place in range(len(lengths) - 2) if lengths[place] <= _START_UP * median(lengths[place + 1 :])]
    return min(usual, default=max(len(lengths) - 2, 0))


def after_start_up(left_out: int, steps: int) -> str:
    """The sentence for steps that are not counted, if any."""
    before = "before is the start-up of the job, by its length"
    return f"counted from step {left_out + 1} of {steps}: {before}" if left_out else ""


def looks_like_training(names: Iterable[str]) -> bool:
    """Whether a name speaks of training; JAX calls a backward pass ``transpose(jvp(…))``."""
    return any(_TRAINING.search(name) for name in names)


def module_as_step(module: str, runs: int) -> str:
    """The sentence for a step time that is the duration of a module."""
    return (
        f"As no step is marked, the step time is the mean duration of {plain(module, 60)}, which took most of the time "
        f"({runs} runs on each device); shares, times and counts are of the whole window."
    )


def some_devices(active: int, present: int) -> str:
    """The sentence for a host of which only some devices worked."""
    return f"Only {active} of {present} devices ran operations; times are means over those."
