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
