"""What a profile may lack, and the capture that would record it."""

import re
from collections.abc import Iterable

from asap.core.text import plain
from asap.profiles.profile import Gap

JAX_TRACE = "jax.profiler.trace(log_dir) around a few steps"
MAXTEXT_SETTINGS = "profiler=xplane profiler_steps=5 skip_first_n_steps_for_profiler=1"
MAXTEXT = f"MaxText: {MAXTEXT_SETTINGS}"

NO_PROFILE = Gap(what="operations with their FLOPs, bytes and bounds", capture=MAXTEXT_SETTINGS)

STEP_MARKERS = Gap(
    what="no step is marked, so where a step begins and ends is not known",
    capture=f"jax.profiler.StepTraceAnnotation('train', step_num=n) around each step; {MAXTEXT}",
)
COSTS = Gap(
    what="FLOPs, bytes and bounds of operations: XProf has none for a CPU",
    capture=f"{JAX_TRACE}, on a TPU or GPU; {MAXTEXT}",
)
HLO = Gap(
    what="HLO operations with FLOPs, bytes and bounds: the profile holds GPU kernels only",
    capture=f"{JAX_TRACE}, of a program that XLA compiled (TensorFlow: tf.function(jit_compile=True)); {MAXTEXT}",
)
CUDA_GRAPHS = Gap(
    what="FLOPs and bytes of operations: they ran inside of CUDA graphs, of which a profile holds the kernels only",
    capture="XLA_FLAGS=--xla_gpu_enable_command_buffer= for the profiled steps",
)
OPERATIONS = Gap(
    what="operations: no device ran anything while it was recorded, or its part of the file is missing",
    capture=f"{JAX_TRACE}, once compilation is over; {MAXTEXT}",
)
MEMORY = Gap(
    what="use of HBM: no allocation was recorded",
    capture="jax.profiler.trace(log_dir) with the host tracer on (ProfileOptions.host_tracer_level=2)",
)
NO_HOST = "The profile has no host plane: the end of the file is missing, or the host tracer was off."
OVERLAP = "On GPUs collectives and copies run beside computation: their share of the time is not all waiting."
NOT_TRAINING = "No step is marked and no name speaks of a backward pass or an optimizer: this may not be training."

_TRAINING = re.compile(r"transpose\(|(?<![a-z])(?:grad|backward|backprop|optimi[sz]er|adam|train)", re.IGNORECASE)


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
