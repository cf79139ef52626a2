"""What a plan of MaxText says of its pipeline and batch, and what MaxText refuses or needs beside it."""

import math
from collections.abc import Mapping

from asap.core.errors import PlanError
from asap.plans.plan import Plan
from asap.stacks.maxtext.axes import positive

LAYERS = "pipeline_parallel_layers"


def read_microbatches(settings: Mapping[str, object], stages: int) -> int | None:
    """Microbatches of the pipeline, else steps whose gradients are accumulated; ``None`` where neither is said.

    Raises:
        PlanError: a pipeline that accumulates gradients as well.
    """
    accumulated = positive(settings, "gradient_accumulation_steps", 1)
    if stages == 1:
        return accumulated if "gradient_accumulation_steps" in settings else None
    if accumulated > 1:
        raise PlanError("gradient_accumulation_steps inside a pipeline: a plan has one number of microbatches")
    said = positive(settings, "num_pipeline_microbatches", -1, may_be_open=True)
    delayed = str(settings.get("pipeline_delay_activation_forwarding", "")).lower() == "true"
    return said if said != -1 else stages * (2 if delayed else 1)


def read_repeats(settings: Mapping[str, object], stages: int, layers: int | None) -> int:
    """Virtual stages of a device.

    Args:
        settings: of MaxText.
        stages: of the pipeline.
        layers: decoder layers that are pipelined.

    Raises:
        PlanError: stages, repeats and layers of a stage do not multiply to the layers, or these are not known.
    """
    repeats = positive(settings, "num_pipeline_repeats", -1, may_be_open=True)
    if stages == 1:
        return 1
    if repeats != -1:
        return repeats
    if layers is None:
        raise PlanError("num_pipeline_repeats is -1 and the number of decoder layers is not known")
    group = stages * positive(settings, "num_layers_per_pipeline_stage", 1)
    if layers % group:
        raise PlanError(
            f"{layers} decoder layers are not a multiple of {group}, the layers of all pipeline stages",
            hint=f"{LAYERS} pipelines some of them",
        )
    return layers // group


def write_pipeline(plan: Plan, layers: int | None) -> dict[str, str]:
    """Overrides for the pipeline of a plan, over so many decoder layers.

    Raises:
        PlanError: the layers do not divide.
    """
    stages = plan.degree("stage")
    if stages == 1:
        return {}
    overrides = {"num_pipeline_repeats": str(plan.pipeline_repeats)}
    if plan.microbatches is not None:
        overrides["num_pipeline_microbatches"] = str(plan.microbatches)
    if layers is not None:
        per_stage, rest = divmod(layers, stages * plan.pipeline_repeats)
        if rest:
            raise PlanError(f"{layers} layers do not divide into {stages} stages x {plan.pipeline_repeats} repeats")
        overrides["num_layers_per_pipeline_stage"] = str(per_stage)
    return overrides


def write_batch(plan: Plan, global_batch: int | None) -> dict[str, str]:
    """Overrides for gradient accumulation, and for the sequences of a device in one of its steps.

    Raises:
        PlanError: the batch does not divide.
    """
    accumulated = 1 if plan.degree("stage") > 1 else plan.microbatches
    if accumulated is None and plan.global_batch is None:
        return {}
    accumulated = accumulated or 1
    overrides = {"gradient_accumulation_steps": str(accumulated)}
    if global_batch is not None:
        micro, rest = divmod(global_batch, accumulated)
        if rest:
            raise PlanError(f"{global_batch} sequences do not divide into {accumulated} gradient accumulation steps")
        overrides["per_device_batch_size"] = per_device_batch(micro, plan.devices)
    return overrides


def per_device_batch(sequences: int, devices: int) -> str:
    """The fraction for which MaxText's ``int(devices * fraction)`` is ``sequences``."""
    if sequences % devices == 0:
        return str(sequences // devices)
    fraction = sequences / devices
    return repr(fraction if int(devices * fraction) == sequences else math.nextafter(fraction, math.inf))


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
