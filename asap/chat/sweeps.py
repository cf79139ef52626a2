"""Values that a sweep takes where none are named."""

from typing import get_args

from asap.answers.inquiry import Inquiry
from asap.plans.axes import Axis

_POLICIES = ("none", "minimal", "full")
_FACTORS = (0.25, 0.5, 1.0, 2.0, 4.0)
_DOUBLINGS = 6


def default_values(vary: str, inquiry: Inquiry) -> tuple[str, ...]:
    """What ``vary`` can be: halves and doubles of now, degrees of an axis, policies; empty where nothing is usual."""
    study = inquiry.study
    work, hardware, plan = study.experiment.workload, study.slice, study.plan
    now = {
        "global_batch": work.global_batch,
        "sequence_length": work.sequence_length,
        "chips": hardware.devices if hardware else None,
    }.get(vary)
    if now:
        return tuple(str(round(now * factor)) for factor in _FACTORS if now * factor >= 1)
    if vary == "slices":
        return ("1", "2", "4", "8")
    if vary == "remat":
        return _POLICIES
    if vary == "precision":
        return ("bf16", "fp8", "int8")
    if vary in ("microbatches", "loss_chunks", "pipeline_repeats"):
        return tuple(str(2**power) for power in range(5))
    if vary in get_args(Axis) and plan is not None:
        return tuple(str(2**power) for power in range(_DOUBLINGS) if 2**power <= plan.devices)
    return ()
