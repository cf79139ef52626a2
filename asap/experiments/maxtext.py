"""An experiment from a MaxText configuration: a file and ``key=value`` overrides."""

import math
from collections.abc import Iterable
from typing import Any

from asap.core.errors import AsapError, ConfigError, PlanError
from asap.core.text import REDACTED, plain, redact
from asap.experiments.documents import Document
from asap.experiments.experiment import Experiment, HardwareReference
from asap.experiments.hardware import refer_to_hardware
from asap.experiments.maxtext_model import architecture_of
from asap.experiments.maxtext_settings import DEFAULT, Settings, load_settings
from asap.models import Workload
from asap.plans import AXES, Plan
from asap.plans.maxtext import from_overrides
from asap.plans.maxtext_axes import NAMES, PER, Network, axis_key, open_axes

_PRECISIONS = {"bfloat16": "bf16", "float16": "fp16", "float32": "fp32"}
_SECRETS = ("hf_access_token",)


def read_maxtext(document: Document, overrides: Iterable[str], experiment: Experiment) -> Experiment:
    """``experiment`` with what the configuration says; its hardware, if it names any, wins over the file's.

    Raises:
        ConfigError: an unknown key, a value of the wrong kind, or settings that contradict each other.
        UsageError: an override that is not ``key=value``.
    """
    settings = load_settings(document, overrides)
    model, provenance, notes = architecture_of(settings)
    hardware, sources, more = _hardware(settings, experiment.hardware)
    provenance |= sources
    notes += more
    plan, sources, more = _plan(settings, document, hardware, model.layers)
    provenance |= sources
    notes += more
    devices = hardware.devices or (plan.devices if plan else None)
    workload, sources, more = _workload(settings, document, devices)
    flags = settings.text("compile_xla_flags")
    return experiment.model_copy(
        update={
            "model": model,
            "hardware": hardware,
            "plan": plan,
            "workload": workload,
            "hyperparameters": experiment.hyperparameters | _hyperparameters(settings.said()),
            "environment": experiment.environment | ({"compile_xla_flags": redact(flags)} if flags else {}),
            "provenance": experiment.provenance | provenance | sources,
            "notes": (*experiment.notes, *notes, *more),
        }
    )


def _hardware(
    settings: Settings, given: HardwareReference
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
    try:
        hardware, notes = refer_to_hardware(topology, slices=slices)
    except AsapError as error:
        raise ConfigError(error.message, where=source, hint=error.hint) from error
    return hardware, {f"hardware.{field}": source for field in ("name", "chip", "topology", "devices")}, notes


def _product_of_dcn(settings: Settings) -> int | None:
    """Slices that the DCN axes ask for, unless one of them takes what is left."""
    if open_axes(settings, "dcn"):
        return None
    keys = [axis_key("dcn", name) for names in NAMES.values() for name in names]
    return math.prod(settings.positive(key) or 1 for key in keys)


def _plan(
    settings: Settings, document: Document, hardware: HardwareReference, layers: int | None
) -> tuple[Plan | None, dict[str, str], tuple[str, ...]]:
    slices = hardware.slices if hardware.topology else _product_of_dcn(settings) or hardware.slices
    per_slice, rest = divmod(hardware.devices, slices) if hardware.devices else (None, 0)
    if rest:
        raise ConfigError(f"{hardware.devices} devices are no multiple of {slices} slices", where=str(document.path))
    if per_slice is None and (unfilled := open_axes(settings, "ici")):
        reason = f"{' and '.join(unfilled)} is -1, and the number of devices is not known"
        return None, {}, (f"the plan is unknown: {reason}; say the hardware or the topology",)
    try:
        pipelined = settings.positive("pipeline_parallel_layers") or layers
        plan = from_overrides(settings, per_slice, slices, pipelined)
    except PlanError as error:
        raise ConfigError(error.message, where=str(document.path), hint=error.hint) from error
    microbatches = "num_pipeline_microbatches" if plan.degree("stage") > 1 else "gradient_accumulation_steps"
    sources = {"plan.remat": settings.source("remat_policy"), "plan.microbatches": settings.source(microbatches)}
    sources |= _mesh_sources(settings, "ici", per_slice) | _mesh_sources(settings, "dcn", slices)
    return plan, sources, ()


def _mesh_sources(settings: Settings, network: Network, total: int | None) -> dict[str, str]:
    sources = {}
    unfilled = open_axes(settings, network)
    for axis in AXES:
        keys = [axis_key(network, name) for name in NAMES[axis]]
        said = [settings.source(key) for key in keys if key in settings]
        filled = [f"derived: {key}=-1 takes what is left of {total} {PER[network]}" for key in keys if key in unfilled]
        sources[f"plan.{network}.{axis}"] = "; ".join(said + filled) or DEFAULT
    return sources


def _workload(
    settings: Settings, document: Document, devices: int | None
) -> tuple[Workload, dict[str, str], tuple[str, ...]]:
    batch, notes = _global_batch(settings, document, devices)
    parallel_keys = [axis_key(network, "tensor_sequence") for network in ("ici", "dcn")]
    workload = Workload(
        global_batch=batch,
        sequence_length=settings.positive("max_target_length"),
        precision=_precision(settings),
        weight_precision=_plain_precision(settings.text("weight_dtype")),
        optimizer=settings.text("opt_type"),
        attention=settings.text("attention"),
        framework="MaxText",
        loss_chunks=settings.positive("num_vocab_tiling"),
        head_gathered_once=settings.flag("vocab_tiling_ag_once"),
        scan_layers=settings.flag("scan_layers"),
        zero_stage=1 if settings.flag("shard_optimizer_over_data") else None,
        sequence_parallel=True if any((settings.whole(key) or 1) > 1 for key in parallel_keys) else None,
    )
    sources = {
        "workload.sequence_length": settings.source("max_target_length"),
        "workload.precision": settings.source("quantization" if settings.text("quantization") else "dtype"),
        "workload.weight_precision": settings.source("weight_dtype"),
        "workload.optimizer": settings.source("opt_type"),
        "workload.attention": settings.source("attention"),
        "workload.framework": document.path.name,
        "workload.loss_chunks": settings.source("num_vocab_tiling"),
        "workload.head_gathered_once": settings.source("vocab_tiling_ag_once"),
        "workload.scan_layers": settings.source("scan_layers"),
    }
    if batch is not None:
        parts = [settings.source("per_device_batch_size"), settings.source("gradient_accumulation_steps")]
        sources["workload.global_batch"] = f"derived: {parts[0]} x {devices} devices x {parts[1]}"
    return workload, sources, notes


def _global_batch(settings: Settings, document: Document, devices: int | None) -> tuple[int | None, tuple[str, ...]]:
    """Sequences in a step, by MaxText's rule ``int(devices * per_device_batch_size) * accumulation``."""
    per_device = settings.number("per_device_batch_size")
    if devices is None or per_device is None:
        return None, ("the global batch is unknown: MaxText states it per device, and their number is not known",)
    micro = devices * per_device
    if not 1 <= micro < math.inf:
        reason = f"per_device_batch_size {per_device} gives less than one sequence on {devices} devices"
        raise ConfigError(reason, where=document.place("per_device_batch_size"))
    notes = () if micro == int(micro) else (f"MaxText cuts {micro:g} sequences a step to {int(micro)}",)
    return int(micro) * (settings.positive("gradient_accumulation_steps") or 1), notes


def _precision(settings: Settings) -> str | None:
    quantization = settings.text("quantization")
    if quantization:
        return "fp8" if "fp8" in quantization else quantization
    return _plain_precision(settings.text("dtype"))


def _plain_precision(dtype: str | None) -> str | None:
    return _PRECISIONS.get(dtype or "", dtype)


def _hyperparameters(said: Settings) -> dict[str, Any]:
    return {key: REDACTED if key in _SECRETS and said[key] else _harmless(said[key]) for key in said}


def _harmless(value: Any) -> Any:
    if isinstance(value, dict):
        return {redact(key): _harmless(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_harmless(item) for item in value]
    return redact(value) if isinstance(value, str) else value
