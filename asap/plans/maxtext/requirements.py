"""What MaxText checks of a configuration beside its mesh (``configs/types.py``, August 2026)."""

from collections.abc import Mapping

from asap.core.errors import PlanError
from asap.plans.plan import Plan

_STRATEGY, _QUANTIZATION = "context_parallel_strategy", "quantization"
_ACROSS_DEVICES = ("ring", "ulysses", "usp")
_FP8 = ("fp8", "nanoo_fp8", "fp8_gpu", "te_fp8_delayedscaling")


def check(plan: Plan, settings: Mapping[str, object]) -> None:
    """Check a plan beside the settings as they are.

    Raises:
        PlanError: FP8 with scales of earlier steps, which goes with no accumulation of gradients.
    """
    accumulates = plan.degree("stage") == 1 and (plan.microbatches or 1) > 1
    if accumulates and settings.get(_QUANTIZATION) in _FP8:
        raise PlanError(f"MaxText accumulates no gradients with {_QUANTIZATION}={settings[_QUANTIZATION]}")


def required(plan: Plan, settings: Mapping[str, object]) -> dict[str, str]:
    """Overrides that a plan needs beside those that say it: a ring has several devices."""
    alone = plan.degree("seq") == 1
    return {_STRATEGY: "all_gather"} if alone and settings.get(_STRATEGY) in _ACROSS_DEVICES else {}
