"""What MaxText checks of a configuration beside its mesh (``configs/types.py``, August 2026)."""

from collections.abc import Mapping

from asap.core.errors import PlanError
from asap.plans.plan import Plan

_STRATEGY, _QUANTIZATION = "context_parallel_strategy", "quantization"
_ACROSS_DEVICES = ("ring", "ulysses", "usp")
_WITHOUT_EXPERT_AXIS = {
    "use_random_routing": "False",
    "use_ragged_sort": "False",
    "ragged_buffer_factor": "-1.0",
    "use_ring_of_experts": "False",
    "num_moe_emb_chunks": "0",
}
"""Values that MaxText wants where experts are not parallel."""
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
    """Overrides that a plan needs beside those that say it: a ring has several devices, packed sequences a ring
    on GPUs, and experts have their axis."""
    found: dict[str, str] = {}
    if plan.degree("seq") == 1 and settings.get(_STRATEGY) in _ACROSS_DEVICES:
        found[_STRATEGY] = "all_gather"
    if plan.degree("seq") > 1 and _packs_on_cudnn(settings) and settings.get(_STRATEGY) != "ring":
        found[_STRATEGY] = "ring"
    had_experts = any(str(settings.get(f"{net}_expert_parallelism", 1)) != "1" for net in ("ici", "dcn"))
    if had_experts and plan.degree("expert") == 1:
        found |= {key: value for key, value in _WITHOUT_EXPERT_AXIS.items() if _differs(settings.get(key), value)}
    return found


def _packs_on_cudnn(settings: Mapping[str, object]) -> bool:
    """Whether Transformer Engine attends to packed sequences, which it does across devices on a balanced ring alone
    (``layers/attention_op.py``)."""
    packs = str(settings.get("packing", True)).casefold() == "true"
    return settings.get("attention") == "cudnn_flash_te" and packs and settings.get("dataset_type") != "synthetic"


def _differs(said: object, value: str) -> bool:
    return said is not None and str(said) not in (value, value.removesuffix(".0"))
