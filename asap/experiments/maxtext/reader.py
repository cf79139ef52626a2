"""An experiment from a MaxText configuration: a file and ``key=value`` overrides."""

import math
from collections.abc import Iterable
from typing import Any

from asap.core.errors import ConfigError, PlanError
from asap.core.secrets import redacted
from asap.core.text import REDACTED, plain
from asap.experiments.experiment import Experiment, HardwareReference, refer_to_hardware
from asap.experiments.files.documents import Document, blamed_on
from asap.experiments.maxtext.architecture import architecture_of
from asap.experiments.maxtext.loading import load_settings
from asap.experiments.maxtext.settings import DEFAULT, DEFAULTS, TABLE, MaxTextSettings, SettingLayer, refuse_unmodelled
from asap.experiments.maxtext.workload import workload_of
from asap.experiments.remarks import table_notes
from asap.models import Architecture
from asap.plans import AXES, Plan
from asap.plans.degrees import DEVICES_UNKNOWN
from asap.stacks.maxtext.axes import FILLED_BY_DEFAULT, PER, Network, axis_key, inexpressible_axes, open_axes
from asap.stacks.maxtext.overrides import from_overrides, is_written
from asap.stacks.maxtext.pipeline import LAYERS
from asap.stacks.maxtext.rematerialisation import remat_note
from asap.stacks.maxtext.sharding_rules import CUSTOM, MESH_AXES, RULES, axis_roles
from asap.stacks.registry import OF_YAML
from asap.stacks.stack_settings import harmless

OF_MODEL = "hyperparameters of the model's file: "
"""What the provenance of a key begins with that the file of the model sets."""

_SECRETS = ("hf_access_token",)
_SHARDING = (CUSTOM, MESH_AXES, RULES)
_LAYOUT = ("remat_policy", "scan_layers")
_DEGREES = {axis_key(network, name): -1 for network, name in FILLED_BY_DEFAULT.items()}


def read_maxtext(document: Document, overrides: Iterable[tuple[str, str]], experiment: Experiment) -> Experiment:
    """``experiment`` with what the configuration says; its hardware, if it names any, wins over the file's.

    Args:
        document: the file that MaxText is started with; without values where there is none.
        overrides: ``key=value``, and where each was said.
        experiment: what is known besides.

    Raises:
        ConfigError: an unknown key, a value of the wrong kind, settings that contradict each other, or another task
            than training.
        UsageError: an override that is not ``key=value``.
    """
    settings = load_settings(document, overrides)
    refuse_unmodelled(settings)
    model, provenance, notes = architecture_of(settings)
    hardware, sources, more = _hardware(settings, experiment.hardware)
    provenance |= sources
    notes += more
    pipelined = settings.positive(LAYERS) or _pipelined_by_default(model)
    plan, sources, more = _plan(settings, document, hardware, pipelined)
    provenance |= sources
    notes += more
    devices = hardware.devices or (plan.devices if plan else None)
    in_pipeline = pipelined if plan and plan.degree("stage") > 1 and pipelined != model.layers else None
    workload, sources, more = workload_of(settings, document, model, devices, in_pipeline)
    sources |= {f"{OF_MODEL}{key}": settings.where(key) for key in settings.of_model if is_written(key)}
    flags = settings.text("compile_xla_flags")
    return experiment.knowing(
        *notes, *more, *_notes(settings),
        model=model, hardware=hardware, plan=plan, workload=workload,
        hyperparameters=_hyperparameters(settings, in_yaml=document.is_yaml and bool(document.values)),
        environment=experiment.environment | ({"compile_xla_flags": redacted(flags)} if flags else {}),
        provenance=provenance | sources,
    )  # fmt: skip


def _hardware(
    settings: MaxTextSettings, given: HardwareReference
) -> tuple[HardwareReference, dict[str, str], tuple[str, ...]]:
    topology = settings.text("compile_topology")
    slices = settings.positive("compile_topology_num_slices") or settings.positive("num_slices")
    slices = given.slices if "slices" in given.model_fields_set else slices or _product_of_dcn(settings) or 1
    if given.name or given.chip or given.topology or given.devices:
        differs = topology is not None and topology != given.name
        notes = (f"compile_topology {plain(topology, 40)} is not the hardware that was said",) if differs else ()
        if given.topology and slices != given.slices:
            devices = given.devices * slices if given.devices else None
            return given.model_copy(update={"slices": slices, "devices": devices}), {}, notes
        return given, {}, notes
    if topology is None:
        return given, {}, ()
    source = settings.source("compile_topology")
    with blamed_on(source):
        hardware, notes = refer_to_hardware(topology, slices=slices)
    return hardware, {f"hardware.{field}": source for field in ("name", "chip", "topology", "devices")}, notes


def _product_of_dcn(settings: MaxTextSettings) -> int | None:
    """Slices that the DCN axes ask for, unless one of them takes what is left."""
    try:
        if open_axes(settings, "dcn"):
            return None
        return _least_slices(settings)
    except PlanError as error:
        raise ConfigError(error.message, hint=error.hint) from error


def _plan(
    settings: MaxTextSettings, document: Document, hardware: HardwareReference, layers: int | None
) -> tuple[Plan | None, dict[str, str], tuple[str, ...]]:
    slices = hardware.slices if hardware.topology else _domains(settings, hardware)
    per_slice, rest = divmod(hardware.devices, slices) if hardware.devices else (None, 0)
    if rest:
        raise ConfigError(f"{hardware.devices} devices are not a multiple of {slices} slices", where=str(document.path))
    with blamed_on(str(document.path)):
        if mixed := inexpressible_axes(settings, slices):
            return None, {}, (f"the plan is not understood: {'; '.join(mixed)}",)
        if per_slice is None and (unfilled := open_axes(settings, "ici")):
            return None, {}, (f"the plan is unknown: {' and '.join(unfilled)} is -1, and {DEVICES_UNKNOWN}",)
        flat = hardware.devices and not hardware.topology
        unsaid = not flat and "slices" not in hardware.model_fields_set and slices == 1
        if unsaid and (unfilled := open_axes(settings, "dcn")) and _least_slices(settings) > 1:
            reason = f"{' and '.join(unfilled)} is -1, and the number of slices is not known"
            return None, {}, (f"the plan is unknown: {reason}; say the slices",)
        plan = from_overrides(settings, per_slice, slices, layers)
        note = remat_note(settings)
    microbatches = "num_pipeline_microbatches" if plan.degree("stage") > 1 else "gradient_accumulation_steps"
    sources = {"plan.remat": settings.source("remat_policy"), "plan.microbatches": settings.source(microbatches)}
    sources |= _mesh_sources(settings, "ici", per_slice) | _mesh_sources(settings, "dcn", slices)
    return plan, sources, (note,) if note else ()


def _domains(settings: MaxTextSettings, hardware: HardwareReference) -> int:
    """What the DCN axes span where there is no torus: as many domains of the ICI axes as the devices make."""
    product = _product_of_dcn(settings)
    if product or not hardware.devices or open_axes(settings, "ici"):
        return product or hardware.slices
    inside = math.prod(settings.positive(axis_key("ici", name)) or 1 for name in axis_roles(settings).known)
    domains, rest = divmod(hardware.devices, inside)
    return hardware.slices if rest or not domains else domains


def _least_slices(settings: MaxTextSettings) -> int:
    """Product of the DCN degrees that are said."""
    return math.prod(settings.positive(axis_key("dcn", name)) or 1 for name in axis_roles(settings).known)


def _pipelined_by_default(model: Architecture) -> int | None:
    """Layers that a pipeline takes unless it is said: all, without the leading dense ones of DeepSeek's."""
    return model.layers - model.leading_dense_layers if model.layers else None


def _mesh_sources(settings: MaxTextSettings, network: Network, total: int | None) -> dict[str, str]:
    sources = {}
    unfilled = open_axes(settings, network)
    roles = axis_roles(settings)
    for axis in AXES:
        keys = [axis_key(network, name) for name in roles.names.get(axis, ())]
        said = [settings.source(key) for key in keys if key in settings]
        filled = [f"derived: {key}=-1 takes what is left of {total} {PER[network]}" for key in keys if key in unfilled]
        sources[f"plan.{network}.{axis}"] = "; ".join(said + filled) or DEFAULT
    return sources


def _notes(settings: MaxTextSettings) -> tuple[str, ...]:
    said = {key: settings[key] for key in settings if settings.layer(key) is not SettingLayer.DEFAULT}
    return table_notes(TABLE, said, None)


def _hyperparameters(settings: MaxTextSettings, in_yaml: bool) -> dict[str, Any]:
    """What the run says: all but MaxText's defaults, and of the model's file what is no shape; and whether a YAML file
    says all of it, so that lines to paste are YAML."""
    said = settings.only(lambda key, layer: _is_said(settings, key, layer))
    known = {key: REDACTED if key in _SECRETS and said[key] else harmless(said[key]) for key in said}
    overridden = any(settings.layer(key) is SettingLayer.OVERRIDE for key in settings)
    return known | ({OF_YAML: True} if in_yaml and not overridden else {})


def _is_said(settings: MaxTextSettings, key: str, layer: SettingLayer) -> bool:
    if layer in (SettingLayer.FILE, SettingLayer.OVERRIDE):
        return True
    if layer is SettingLayer.DEFAULT:
        return False
    if layer is SettingLayer.MODEL:
        return key in (*_SHARDING, *_LAYOUT) or is_written(key)
    if key in _SHARDING:
        return not axis_roles(settings).usual
    usual = _DEGREES.get(key, 1 if key.endswith("_parallelism") else DEFAULTS.get(key, settings[key]))
    return settings[key] != usual
