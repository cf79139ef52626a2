"""What of MaxText no table says: a plan over two networks, its pipeline and batch, and lines that say one."""

import math
from collections.abc import Iterator, Mapping
from typing import Any

from asap.core.errors import PlanError
from asap.core.text import plain
from asap.core.units import exact
from asap.models import Architecture
from asap.plans.degrees import DEVICES_UNKNOWN, InexpressiblePlanError, degree
from asap.plans.plan import OF_WORKLOAD, Plan
from asap.stacks.maxtext.architecture import OF_MODEL, OVERRIDE_MODEL
from asap.stacks.maxtext.architecture import model_of as model_of
from asap.stacks.maxtext.mesh import check_axes, open_axes, read_mesh, said_product, write_layout, write_mesh
from asap.stacks.maxtext.mesh import keys_of_plan as keys_of_plan
from asap.stacks.maxtext.mesh import left_open as left_open
from asap.stacks.maxtext.mesh import plan_axes as plan_axes
from asap.stacks.maxtext.rematerialisation import TENSORS, offload_of, remat_of, tensors_left_out, write_remat
from asap.stacks.reading import field_of, is_on
from asap.stacks.registry import OF_YAML
from asap.stacks.registry import spec as table_of
from asap.stacks.rules import facts_of, needed, refusals
from asap.stacks.spec import Spec
from asap.stacks.stack_settings import StackSettings
from asap.stacks.writing import beside_mesh, paste_line, yaml_lines

LAYERS, _MICRO, _REPEATS = "pipeline_parallel_layers", "num_pipeline_microbatches", "num_pipeline_repeats"
_EACH, _BATCH, _ACCUMULATION = "num_layers_per_pipeline_stage", "per_device_batch_size", "gradient_accumulation_steps"
_PRECISIONS = ("weight_precision", "gradient_precision", "first_moment_precision")
TABLE = table_of("maxtext")

Settings = Mapping[str, object]


def plan_of(settings: Settings, devices: int | None, slices: int, layers: int | None) -> Plan:
    """The plan that MaxText settings describe.

    Args:
        settings: with MaxText's defaults.
        devices: of the job.
        slices: as far as they are said, else as many as the DCN axes span.
        layers: decoder layers that are pipelined.

    Raises:
        PlanError: an unknown axis, two -1 on one side, a product that is not the device count, or a value that is no
            number.
        InexpressiblePlanError: devices or slices are not said, or an axis does what no axis of a plan does.
    """
    remat, offload = remat_of(settings), offload_of(settings)
    check_axes(settings)
    left = open_axes(settings, "dcn")
    if devices is None and open_axes(settings, "ici"):
        raise InexpressiblePlanError(DEVICES_UNKNOWN)
    if left and slices == 1 < said_product(settings, "dcn"):
        raise InexpressiblePlanError(f"{left[0]} is -1, and the number of slices is not known; say the slices")
    slices = said_product(settings, "dcn") if slices == 1 and not left else slices
    per_slice, rest = divmod(devices or said_product(settings, "ici") * slices, slices)
    if rest:
        raise PlanError(f"{devices} devices are not a multiple of {slices} slices")
    ici, dcn = read_mesh(settings, "ici", per_slice), read_mesh(settings, "dcn", slices)
    stages = ici.stage * dcn.stage
    microbatches, repeats = _microbatches(settings, stages), _repeats(settings, stages, layers)
    return Plan(ici=ici, dcn=dcn, microbatches=microbatches, pipeline_repeats=repeats, remat=remat, offload=offload)


def _microbatches(settings: Settings, stages: int) -> int | None:
    """Microbatches of the pipeline, else steps whose gradients are accumulated; ``None`` where neither is said."""
    accumulated = degree(settings, _ACCUMULATION)
    if stages == 1:
        return accumulated if _ACCUMULATION in settings else None
    if accumulated > 1:
        raise PlanError(f"{_ACCUMULATION} inside a pipeline: a plan has one number of microbatches")
    delayed = is_on(settings, "pipeline_delay_activation_forwarding")
    return _said(settings, _MICRO) or stages * (2 if delayed else 1)


def _repeats(settings: Settings, stages: int, layers: int | None) -> int:
    """Virtual stages of a device; raises PlanError where the layers of all stages do not multiply to the layers."""
    said = _said(settings, _REPEATS)
    if stages == 1 or said:
        return said if said and stages > 1 else 1
    if layers is None:
        raise PlanError(f"{_REPEATS} is -1 and the number of decoder layers is not known")
    group = stages * degree(settings, _EACH)
    if layers % group:
        reason = f"{layers} decoder layers are not a multiple of {group}, the layers of all pipeline stages"
        raise PlanError(reason, hint=f"{LAYERS} pipelines some of them")
    return layers // group


def _said(settings: Settings, key: str) -> int | None:
    return None if str(settings.get(key, -1)) == "-1" else degree(settings, key)


def batch_of(settings: Settings, devices: int) -> int:
    """Sequences in a step, by MaxText's rule ``int(devices * per_device_batch_size) * accumulation``."""
    return int(_sequences(settings, devices)) * degree(settings, _ACCUMULATION)


def _sequences(settings: Settings, devices: int) -> float:
    try:
        sequences = devices * float(str(settings.get(_BATCH)))
    except ValueError as error:
        raise PlanError(f"{_BATCH} must be a number, not {plain(settings.get(_BATCH), 40)}") from error
    if not 1 <= sequences < math.inf:
        raise PlanError(f"{_BATCH} {settings.get(_BATCH)} gives less than one sequence on {devices} devices")
    return sequences


def layers_of(settings: Settings, model: Architecture) -> int | None:
    """Layers in a pipeline: all, without the leading dense ones of DeepSeek's, unless it is said."""
    return _said(settings, LAYERS) or (model.layers - model.leading_dense_layers if model.layers else None)


def plan_fields(settings: StackSettings, plan: Plan | None, model: Architecture | None, *_: object) -> dict[str, Any]:
    """Fields of the workload. Only gradients of fp32 weights are cast to ``grad_dtype`` (MaxText's
    trainers/pre_train/train.py); without a factor every expert computes every token (``dense_matmul``, layers/moe.py).
    """
    found = {field: field_of(TABLE, field, settings) for field in ("zero_stage", *_PRECISIONS)}
    weights = found.pop("weight_precision")
    if weights in (found["gradient_precision"], "bf16", "fp16"):
        found["gradient_precision"] = None
    if weights == found["first_moment_precision"]:
        found["first_moment_precision"] = None
    if model is not None and plan is not None and plan.degree("stage") > 1:
        layers = layers_of(settings, model)
        found["pipelined_layers"] = layers if layers != model.layers else None
    if model is not None and model.is_moe and not is_on(settings, "sparse_matmul"):
        said = settings.number("capacity_factor") or 0.0
        found["capacity_factor"] = said if said > 0 else model.experts / max(model.experts_per_token, 1)
    return found


def notes_on(settings: Settings, plan: Plan | None, _: int | None) -> Iterator[str]:
    """What of the settings the plan says otherwise."""
    if plan is None:
        return
    if left_out := tensors_left_out(settings):
        yield f"remat_policy=custom: the prediction leaves out {', '.join(left_out)}"
    if (sequences := _sequences(settings, plan.devices)) != int(sequences):
        yield f"MaxText cuts {exact(sequences)} sequences a step to {int(sequences)}"


def changes(
    spec: Spec,
    plan: Plan,
    current: Settings,
    *,
    global_batch: int | None,
    layers: int | None,
    sequence: int | None,
    topology: tuple[int, ...] | None,
) -> dict[str, str]:
    """Overrides that make MaxText run a plan.

    On top of a configuration they change what the plan changes and nothing else: no key can be left out, and what
    the configuration sets for the same effect (names of axes, a policy tensor by tensor) stays. Without one, each
    degree is said, except the DCN side where the plan does not use it.

    Raises:
        PlanError: MaxText cannot express the plan.
    """
    facts, layout = facts_of(plan), write_layout(plan, current, topology)
    found = expressed(spec, plan, current, global_batch, layers)
    if current:
        found = _drop_superfluous(spec, found, current, plan, global_batch, layers)
    beside = beside_mesh(spec, plan, current)
    found |= layout | {key: value for key, value in beside.items() if str(current.get(key, "")) != value}
    found |= needed(spec.rules, facts, current)
    found |= {"max_target_length": str(sequence)} if sequence and not current else {}
    beside_model = _is_model(found, current) and not is_on(current, OVERRIDE_MODEL)
    return found | ({OVERRIDE_MODEL: "true"} if beside_model else {})


def expressed(
    spec: Spec, plan: Plan, current: Settings, global_batch: int | None, layers: int | None
) -> dict[str, str]:
    """Overrides that say all of a plan; raises PlanError where MaxText has none, or refuses it beside the settings."""
    if (reason := next(refusals(spec.rules, facts_of(plan), current), None)) is not None:
        raise PlanError(reason)
    over_slices = plan.dcn.devices > 1 or any(key.startswith("dcn_") for key in current)
    found = write_mesh(plan.ici, "ici", current) | (write_mesh(plan.dcn, "dcn", current) if over_slices else {})
    return found | _batch(plan, global_batch) | _pipeline(plan, layers) | write_remat(plan, current)


def _is_model(changed: Mapping[str, str], current: Settings) -> bool:
    """Whether the model's file sets what changes, which only a command overrides."""
    said = current.get(OF_MODEL)
    return isinstance(said, list) and not changed.keys().isdisjoint(said)


def _batch(plan: Plan, global_batch: int | None) -> dict[str, str]:
    """Overrides for gradient accumulation, and for the sequences of a device in one of its steps."""
    if plan.degree("stage") == 1 and plan.microbatches is None and plan.global_batch is None:
        return {}
    accumulated = plan.microbatches or 1 if plan.degree("stage") == 1 else 1
    if global_batch is None:
        return {_ACCUMULATION: str(accumulated)}
    micro, rest = divmod(global_batch, accumulated)
    if rest:
        raise PlanError(f"{global_batch} sequences do not divide into {accumulated} gradient accumulation steps")
    fraction = micro / plan.devices  # for which int(devices * fraction) is what is wanted
    fraction = fraction if int(plan.devices * fraction) == micro else math.nextafter(fraction, math.inf)
    text = str(micro // plan.devices) if micro % plan.devices == 0 else repr(fraction)
    return {_ACCUMULATION: str(accumulated), _BATCH: text}


def _pipeline(plan: Plan, layers: int | None) -> dict[str, str]:
    """Overrides for the pipeline of a plan, over so many decoder layers."""
    stages, repeats = plan.degree("stage"), plan.pipeline_repeats
    if stages == 1:
        return {}
    each, rest = divmod(layers or 0, stages * repeats)
    if rest:
        raise PlanError(f"{layers} layers do not divide into {stages} stages x {repeats} repeats")
    found = {_REPEATS: str(repeats)} | ({_MICRO: str(plan.microbatches)} if plan.microbatches else {})
    return found | ({_EACH: str(each)} if layers else {})


def _drop_superfluous(
    spec: Spec, overrides: dict[str, str], current: Settings, plan: Plan, batch: int | None, layers: int | None
) -> dict[str, str]:
    """Overrides without those that the plan, read back, does not miss."""
    settings = spec.add_defaults(current)
    unknown = {field: getattr(plan, field) for field in ("microbatches", "remat") if getattr(plan, field) is None}
    unknown |= {field: getattr(plan, field) for field in OF_WORKLOAD}
    wanted = plan.model_copy(update={"offload": tuple(sorted(plan.offload))})

    def runs(kept: Mapping[str, str]) -> bool:
        changed = {**settings, **kept}
        try:
            read = plan_of(changed, plan.devices, plan.dcn.devices, layers)
            if batch is not None and batch_of(changed, plan.devices) != batch:
                return False
        except PlanError:
            return False
        return read.model_copy(update=unknown | {"offload": tuple(sorted(read.offload))}) == wanted

    if not runs(overrides):
        return overrides
    overrides = {key: value for key, value in overrides.items() if str(current.get(key)) != value}
    fewer = (
        {other: overrides[other] for other in overrides if other != key} for key in overrides if key not in TENSORS
    )
    kept = next(filter(runs, fewer), None)
    return overrides if kept is None else _drop_superfluous(spec, kept, current, plan, batch, layers)


def lines(_: Spec, changed: Mapping[str, str], current: Settings) -> str:
    """Overrides as arguments of the launcher, ``ici_fsdp_parallelism=16 …``, or as YAML where all was said so."""
    return yaml_lines(changed) if OF_YAML in current and not _is_model(changed, current) else paste_line(changed)
