"""Step times of MaxText runs that published FLOP/s and no time, by MaxText's own count of FLOPs.

Until July 2025 it counted ``6 · parameters · tokens`` and attention without the causal mask
(AI-Hypercomputer/maxtext, ``maxtext_utils.calculate_tflops_training_per_device``). Only calibration uses these.
"""

from collections.abc import Mapping
from typing import Any

from asap.hardware.slices import Slice
from asap.models import Architecture, Workload, count_parameters

TERA = 1e12


def step_time_of_flops(
    row: Mapping[str, Any], architecture: Architecture, workload: Workload, hardware: Slice
) -> float | None:
    """Seconds of a step, or ``None`` if this is not a dense MaxText run with published FLOP/s."""
    rate = row.get("tflops_per_s_per_device")
    if row.get("framework") != "MaxText" or architecture.is_moe or not isinstance(rate, int | float) or rate <= 0:
        return None
    tokens = float(workload.tokens or 0)
    scores = (architecture.layers or 0) * (architecture.heads or 0) * (architecture.head_dim or 0)
    attention = 12.0 * scores * (workload.sequence_length or 0)
    flops = (6.0 * count_parameters(architecture).total + attention) * tokens
    return flops / (rate * TERA * hardware.devices)
