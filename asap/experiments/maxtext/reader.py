"""An experiment from a MaxText configuration: a file and ``key=value`` overrides."""

import math
from collections.abc import Iterable
from typing import Any

from asap.core.errors import ConfigError, PlanError
from asap.core.secrets import redacted
from asap.core.text import REDACTED, plain
from asap.core.units import exact
from asap.experiments.experiment import Experiment, HardwareReference, refer_to_hardware
from asap.experiments.files.documents import Document, blamed_on, validated
from asap.experiments.maxtext.architecture import architecture_of
from asap.experiments.maxtext.loading import load_settings
from asap.experiments.maxtext.settings import DEFAULT, TABLE, MaxTextSettings, SettingLayer, refuse_unmodelled
from asap.experiments.remarks import table_notes
from asap.models import Architecture, Workload
from asap.plans import Plan
from asap.plans.degrees import DEVICES_UNKNOWN
from asap.stacks.maxtext.axes import FILLED_BY_DEFAULT, PER, Network, axis_key, inexpressible_axes, open_axes
from asap.stacks.maxtext.overrides import from_overrides, is_written
from asap.stacks.maxtext.pipeline import LAYERS
from asap.stacks.maxtext.rematerialisation import remat_note
from asap.stacks.maxtext.sharding_rules import MESH_AXES, RULES, axis_roles
from asap.stacks.reading import field_of
from asap.stacks.registry import OF_YAML
from asap.stacks.stack_settings import harmless
from asap.stacks.words import word_keys

OF_MODEL = "hyperparameters of the model's file: "
"""What the provenance of a key begins with that the file of the model sets."""

_SECRETS = ("hf_access_token",)
_SHARDING = (MESH_AXES, RULES)
_LAYOUT = ("remat_policy", "scan_layers")
_BATCH, _ACCUMULATION = TABLE.batch.micro.keys[0], "gradient_accumulation_steps"
_DEGREES = {axis_key(network, name): -1 for network, name in FILLED_BY_DEFAULT.items()}


def read_maxtext(
    document: Document, overrides: Iterable[str], experiment: Experiment, said: Iterable[tuple[str, str]] = ()
) -> Experiment:
    """``experiment`` with what the configuration says; its hardware, if it names any, wins over the file's.

    Args:
        document: the file that MaxText is started with; without values where there is none.
        overrides: ``key=value`` of the user.
        experiment: what is known besides.
        said: ``key=value`` of a script, and where each was said.

    Raises:
        ConfigError: an unknown key, a value of the wrong kind, settings that contradict each other, or another task
            than training.
        UsageError: an override that is not ``key=value``.
    """
    settings = load_settings(document, overrides, said)
    refuse_unmodelled(settings)
    model, provenance, notes = architecture_of(settings)
    hardware, of_hardware = _hardware(settings, experiment.hardware)
    if hardware is not experiment.hardware and not experiment.hardware.devices:
        provenance["hardware"] = settings.source("compile_topology")
    pipelined = settings.positive(LAYERS)
    if not pipelined and model.layers:  # a pipeline takes all layers, without the leading dense ones of DeepSeek's
        pipelined = model.layers - model.leading_dense_layers
    plan, of_plan = _plan(settings, document, hardware, pipelined)
    devices = hardware.devices or (plan.devices if plan else None)
    in_pipeline = pipelined if plan and plan.degree("stage") > 1 and pipelined != model.layers else None
    batch, of_batch = _global_batch(settings, document, devices)
    known = {key: settings[key] for key in settings if settings.where(key) != DEFAULT}
    flags = settings.text("compile_xla_flags")
    return experiment.knowing(
        *notes, *of_hardware, *(of_plan if plan else ()), *of_batch, *table_notes(TABLE, known, None),
        first=() if plan else of_plan,
        model=model, hardware=hardware, plan=plan,
        workload=_workload(settings, document, model, batch, in_pipeline),
        hyperparameters=_hyperparameters(settings, in_yaml=document.is_yaml and bool(document.values)),
        environment=experiment.environment | ({"compile_xla_flags": redacted(flags)} if flags else {}),
        provenance=provenance | _sources(settings, document, devices),
    )  # fmt: skip


def _sources(settings: MaxTextSettings, document: Document, devices: int | None) -> dict[str, str]:
    """Where what is no field of the model was said."""
    words = {f"workload.{field}": names for field, said in TABLE.workload.items() if (names := word_keys(*said))}
    keys = {path: next(filter(settings.text, names), names[0]) for path, names in words.items()}
    keys |= {"plan.remat": "remat_policy", "plan.microbatches": _ACCUMULATION}
    keys |= {
        f"plan.{network}.{axis}": next((key for key in degrees if key in settings), degrees[0])
        for network in PER
        for axis, names in axis_roles(settings).names.items()
        if (degrees := [axis_key(network, name) for name in names])
    }
    filled = {key: f"derived: {key}=-1 takes what is left" for network in PER for key in open_axes(settings, network)}
    sources = {path: filled.get(key) or settings.source(key) for path, key in keys.items()}
    derived = f"derived: {settings.source(_BATCH)} x {devices} devices"
    sources |= {"workload": document.path.name} | ({"workload.global_batch": derived} if devices else {})
    of_model = filter(is_written, settings.of_layer(SettingLayer.MODEL))
    return sources | {f"{OF_MODEL}{key}": settings.where(key) for key in of_model}


def _hardware(settings: MaxTextSettings, given: HardwareReference) -> tuple[HardwareReference, tuple[str, ...]]:
    topology = settings.text("compile_topology")
    slices = settings.positive("compile_topology_num_slices") or settings.positive("num_slices")
    slices = given.slices if "slices" in given.model_fields_set else slices or _product_of_dcn(settings) or 1
    if given.name or given.chip or given.topology or given.devices:
        differs = topology is not None and topology != given.name
        notes = (f"compile_topology {plain(topology, 40)} is not the hardware that was said",) if differs else ()
        if given.topology and slices != given.slices:
            devices = given.devices * slices if given.devices else None
            return given.model_copy(update={"slices": slices, "devices": devices}), notes
        return given, notes
    if topology is None:
        return given, ()
    with blamed_on(settings.source("compile_topology")):
        return refer_to_hardware(topology, slices=slices)


def _product_of_dcn(settings: MaxTextSettings) -> int | None:
    """Slices that the DCN axes ask for, unless one of them takes what is left."""
    try:
        return None if open_axes(settings, "dcn") else _product(settings, "dcn")
    except PlanError as error:
        raise ConfigError(error.message, hint=error.hint) from error


def _plan(
    settings: MaxTextSettings, document: Document, hardware: HardwareReference, layers: int | None
) -> tuple[Plan | None, tuple[str, ...]]:
    slices = hardware.slices if hardware.topology else _domains(settings, hardware)
    per_slice, rest = divmod(hardware.devices, slices) if hardware.devices else (None, 0)
    if rest:
        raise ConfigError(f"{hardware.devices} devices are not a multiple of {slices} slices", where=str(document.path))
    with blamed_on(str(document.path)):
        if mixed := inexpressible_axes(settings, slices):
            return None, (f"the plan is not understood: {'; '.join(mixed)}",)
        if per_slice is None and (unfilled := open_axes(settings, "ici")):
            return None, (f"the plan is unknown: {' and '.join(unfilled)} is -1, and {DEVICES_UNKNOWN}",)
        flat = hardware.devices and not hardware.topology
        unsaid = not flat and "slices" not in hardware.model_fields_set and slices == 1
        if unsaid and (unfilled := open_axes(settings, "dcn")) and _product(settings, "dcn") > 1:
            reason = f"{' and '.join(unfilled)} is -1, and the number of slices is not known"
            return None, (f"the plan is unknown: {reason}; say the slices",)
        note = remat_note(settings)
        return from_overrides(settings, per_slice, slices, layers), (note,) if note else ()


def _domains(settings: MaxTextSettings, hardware: HardwareReference) -> int:
    """What the DCN axes span where there is no torus: as many domains of the ICI axes as the devices make."""
    product = _product_of_dcn(settings)
    if product or not hardware.devices or open_axes(settings, "ici"):
        return product or hardware.slices
    domains, rest = divmod(hardware.devices, _product(settings, "ici"))
    return hardware.slices if rest or not domains else domains


def _product(settings: MaxTextSettings, network: Network) -> int:
    """Of the degrees that are said."""
    return math.prod(settings.positive(axis_key(network, name)) or 1 for name in axis_roles(settings).known)


def _global_batch(
    settings: MaxTextSettings, document: Document, devices: int | None
) -> tuple[int | None, tuple[str, ...]]:
    """Sequences in a step, by MaxText's rule ``int(devices * per_device_batch_size) * accumulation``."""
    per_device = settings.number(_BATCH)
    if devices is None or per_device is None:
        return None, ("the global batch is unknown: MaxText states it per device, and their number is not known",)
    micro = devices * per_device
    if not 1 <= micro < math.inf:
        reason = f"{_BATCH} {per_device} gives less than one sequence on {devices} devices"
        raise ConfigError(reason, where=document.place(_BATCH))
    notes = () if micro == int(micro) else (f"MaxText cuts {exact(micro)} sequences a step to {int(micro)}",)
    return int(micro) * (settings.positive(_ACCUMULATION) or 1), notes


def _workload(
    settings: MaxTextSettings, document: Document, model: Architecture, batch: int | None, pipelined: int | None
) -> Workload:
    """Only gradients of fp32 weights are cast to ``grad_dtype`` (MaxText's trainers/pre_train/train.py)."""
    with blamed_on(str(document.path)):
        found = {field: field_of(TABLE, field, settings) for field in TABLE.workload}
    weights = found["weight_precision"]
    if weights in (found["gradient_precision"], "bf16", "fp16"):
        found["gradient_precision"] = None
    if weights == found["first_moment_precision"]:
        found["first_moment_precision"] = None
    # dense_matmul (layers/moe.py): without a factor every expert computes every token
    said = settings.number("capacity_factor") or 0.0
    capacity = said if said > 0 else model.experts / max(model.experts_per_token, 1)
    found |= {
        "sequence_length": settings.positive("max_target_length"),
        "global_batch": batch,
        "framework": TABLE.framework,
        "pipelined_layers": pipelined,
        "capacity_factor": capacity if model.is_moe and not settings.flag("sparse_matmul") else None,
    }
    return validated(Workload, found, str(document.path))


def _hyperparameters(settings: MaxTextSettings, in_yaml: bool) -> dict[str, Any]:
    """What the run says: all but MaxText's defaults, and of the model's file what is no shape; and whether a YAML file
    says all of it, so that lines to paste are YAML."""
    said = {key: settings[key] for key in settings if _is_said(settings, key)}
    known = {key: REDACTED if key in _SECRETS and value else harmless(value) for key, value in said.items()}
    overridden = any(settings.layer(key) is SettingLayer.OVERRIDE for key in settings)
    return known | ({OF_YAML: True} if in_yaml and not overridden else {})


def _is_said(settings: MaxTextSettings, key: str) -> bool:
    layer = settings.layer(key)
    if layer is SettingLayer.MODEL:
        return key in (*_SHARDING, *_LAYOUT) or is_written(key)
    if layer is not SettingLayer.DEFAULT:
        return True
    if key in _SHARDING:
        return not axis_roles(settings).usual
    usual = _DEGREES.get(key, 1 if key.endswith("_parallelism") else TABLE.defaults.get(key, settings[key]))
    return settings[key] != usual and str(settings[key]) != usual
