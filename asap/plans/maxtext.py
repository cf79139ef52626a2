"""A plan as MaxText's ``key=value`` overrides, both ways."""

import math
from collections.abc import Mapping

from asap.core.errors import PlanError
from asap.plans.maxtext_axes import check_axes, read_mesh, whole_number, write_mesh
from asap.plans.maxtext_remat import read_offload, read_remat, write_remat
from asap.plans.plan import Plan
from asap.plans.torus import split_axes

_SPLIT = "allow_split_physical_axes"


def from_overrides(
    settings: Mapping[str, object], devices_per_slice: int | None = None, slices: int = 1, layers: int | None = None
) -> Plan:
    """The plan that MaxText settings describe; keys that do not concern it are ignored.

    Args:
        settings: keys and values as in a configuration or on the command line. An axis that is absent has
            MaxText's default; an absent ``remat_policy`` or ``gradient_accumulation_steps`` is unknown.
        devices_per_slice: JAX devices of one slice, to fill up -1 and to check the product.
        slices: slices of the job.
        layers: decoder layers, for ``num_pipeline_repeats=-1``.

    Raises:
        PlanError: an unknown axis, two -1 on one side, a product that is not the device count, an axis that a
            plan has no word for, or a value that is not a number.
    """
    check_axes(settings)
    ici = read_mesh(settings, "ici", devices_per_slice)
    dcn = read_mesh(settings, "dcn", slices)
    stages = ici.stage * dcn.stage
    return Plan(
        ici=ici,
        dcn=dcn,
        microbatches=_microbatches(settings, stages),
        pipeline_repeats=_repeats(settings, stages, layers),
        remat=read_remat(settings),
        offload=read_offload(settings),
    )


def to_overrides(
    plan: Plan,
    current: Mapping[str, object] | None = None,
    *,
    global_batch: int | None = None,
    layers: int | None = None,
    topology: tuple[int, ...] | None = None,
) -> dict[str, str]:
    """Overrides that make MaxText run a plan, each degree said so that nothing is left to defaults.

    The DCN side is left out where neither the plan nor the settings use it: MaxText then has one slice.

    Args:
        plan: what to run.
        current: the settings that the overrides go on top of: names of axes are kept where they can be, and
            axes that the plan does not use are set back to 1.
        global_batch: sequences in a step; gives ``per_device_batch_size`` where the plan sets microbatches.
        layers: decoder layers; gives ``num_layers_per_pipeline_stage``.
        topology: of a slice of TPUs; gives ``allow_split_physical_axes``, without which MaxText refuses a mesh whose
            axes do not take whole axes of the torus.

    Raises:
        PlanError: MaxText cannot express the plan.
    """
    current = current or {}
    overrides = write_mesh(plan.ici, "ici", current)
    if plan.dcn.devices > 1 or any(key.startswith("dcn_") for key in current):
        overrides |= write_mesh(plan.dcn, "dcn", current)
    overrides |= _write_batch(plan, global_batch) | _write_pipeline(plan, layers)
    if topology and split_axes(plan.ici, topology) and str(current.get(_SPLIT)).lower() != "true":
        overrides[_SPLIT] = "true"
    return overrides | write_remat(plan, current)


def paste_line(overrides: Mapping[str, str]) -> str:
    """Overrides as arguments of the launcher: ``ici_fsdp_parallelism=16 …``."""
    return " ".join(f"{key}={value}" for key, value in overrides.items())


def _microbatches(settings: Mapping[str, object], stages: int) -> int | None:
    accumulated = whole_number(settings, "gradient_accumulation_steps", 1)
    if stages == 1:
        return accumulated if "gradient_accumulation_steps" in settings else None
    if accumulated > 1:
        raise PlanError("gradient_accumulation_steps inside a pipeline: a plan has one number of microbatches")
    said = whole_number(settings, "num_pipeline_microbatches", -1, may_be_open=True)
    delayed = str(settings.get("pipeline_delay_activation_forwarding", "")).lower() == "true"
    return said if said != -1 else stages * (2 if delayed else 1)


def _repeats(settings: Mapping[str, object], stages: int, layers: int | None) -> int:
    repeats = whole_number(settings, "num_pipeline_repeats", -1, may_be_open=True)
    if stages == 1:
        return 1
    if repeats != -1:
        return repeats
    if layers is None:
        raise PlanError("num_pipeline_repeats is -1 and the number of decoder layers is not known")
    group = stages * whole_number(settings, "num_layers_per_pipeline_stage", 1)
    if layers % group:
        raise PlanError(f"{layers} decoder layers are not a multiple of {group}, the layers of all pipeline stages")
    return layers // group


def _write_batch(plan: Plan, global_batch: int | None) -> dict[str, str]:
    accumulated = 1 if plan.degree("stage") > 1 else plan.microbatches
    if accumulated is None:
        return {}
    overrides = {"gradient_accumulation_steps": str(accumulated)}
    if global_batch is not None:
        micro, rest = divmod(global_batch, accumulated)
        if rest:
            raise PlanError(f"{global_batch} sequences do not divide into {accumulated} gradient accumulation steps")
        overrides["per_device_batch_size"] = _per_device(micro, plan.devices)
    return overrides


def _per_device(sequences: int, devices: int) -> str:
    """The fraction for which MaxText's ``int(devices * fraction)`` is ``sequences``."""
    if sequences % devices == 0:
        return str(sequences // devices)
    fraction = sequences / devices
    return repr(fraction if int(devices * fraction) == sequences else math.nextafter(fraction, math.inf))


def _write_pipeline(plan: Plan, layers: int | None) -> dict[str, str]:
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
