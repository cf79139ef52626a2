"""An experiment from a configuration of torchtitan: TOML, or the JSON that a run writes."""

import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from asap.core.errors import ConfigError, PlanError
from asap.core.text import plain
from asap.experiments.experiment import Experiment
from asap.experiments.files.documents import Document
from asap.experiments.huggingface_model import SHAPES, read_named_model
from asap.experiments.remarks import note_on_unmodelled
from asap.experiments.shell import has_substitution
from asap.experiments.torchtitan.forks import (
    CATALOGUE,
    DEBUG_MODEL,
    OTHERS,
    notes_on_own,
    own_model,
    own_shapes,
    refuse_unread,
)
from asap.models import Architecture, Workload, find_architecture
from asap.models.workload import ContextParallel
from asap.plans.degrees import DEVICES_UNKNOWN, InexpressiblePlanError
from asap.plans.plan import Plan
from asap.plans.validity import Degrees
from asap.stacks.stack_settings import StackSettings, dotted, overriding
from asap.stacks.torchtitan import settings as titan
from asap.stacks.torchtitan.lines import PYTHON, attention_backend
from asap.stacks.torchtitan.stages import LENGTH, SEQUENCE

_SPEC, _RECOMPUTATION, _OPTIMIZER = "model_spec", "activation_checkpoint", "optimizer"
_PRECISION_UNKNOWN = "whether matrix products run in fp8 is not in the file: add workload.precision=fp8 where they do"


def is_saved(values: Mapping[str, Any]) -> bool:
    """Whether a configuration is the JSON of a run since 2026."""
    return isinstance(values.get(_SPEC), dict)


def in_names_of_toml(values: Mapping[str, Any]) -> dict[str, Any]:
    """The configuration with name and flavor of the model, the mode of recomputation and the optimizer's name."""
    spec = values[_SPEC]
    named: dict[str, Any] = {key: value for key, value in values.items() if key != _SPEC}
    named["model"] = {"name": spec.get("name"), "flavor": spec.get("flavor")}
    named[_RECOMPUTATION] = _recomputation(values.get(_RECOMPUTATION))
    if name := _optimizer(values.get(_OPTIMIZER)):
        named[_OPTIMIZER] = {"name": name}
    return named


def with_what_is_saved(experiment: Experiment, values: Mapping[str, Any]) -> Experiment:
    """The record with what only the JSON tells: the model's shapes, moments in bf16, and that fp8 is not told."""
    workload, model, notes = experiment.workload, experiment.model, ()
    if model is not None:
        model, notes = _with_shapes(model, values)
    if workload.precision == "bf16":
        workload, notes = workload.model_copy(update={"precision": None}), (*notes, _PRECISION_UNKNOWN)
    if _within(values, _OPTIMIZER, "implementation") == "fused_opt_states_bf16":
        moments = {"first_moment_precision": "bf16", "second_moment_precision": "bf16"}
        workload = workload.model_copy(update=moments)
    return experiment.knowing(*notes, model=model, workload=workload, hyperparameters={PYTHON: True})


def _with_shapes(known: Architecture, values: Mapping[str, Any]) -> tuple[Architecture, tuple[str, ...]]:
    """The model with the layers, width and vocabulary of the file, which win over those of its flavor."""
    layers = _within(values, _SPEC, "model", "layers") or _within(values, _SPEC, "model", "n_layers")
    shapes = {
        "layers": len(layers) if isinstance(layers, list | dict) else layers,
        "d_model": _within(values, _SPEC, "model", "dim"),
        "vocab": _within(values, _SPEC, "model", "vocab_size"),
    }
    shapes = {field: value for field, value in shapes.items() if type(value) is int and value > 0}
    changed = {field: value for field, value in shapes.items() if getattr(known, field) != value}
    if not changed:
        return known, ()
    if known.layers is None:
        return known.model_copy(update=changed), ()
    note = f"the model has {', '.join(f'{field}={value}' for field, value in changed.items())}, unlike its flavor"
    if "d_model" in changed:
        return Architecture(name=known.name).model_copy(update=shapes), (f"{note}: its other shapes are unknown",)
    return known.model_copy(update=changed), (note,)


def _recomputation(said: Any) -> dict[str, Any]:
    """As a mode; a class is told by the fields that it alone has."""
    if not isinstance(said, dict):
        return {"mode": "none"}
    selective = {"mode": "selective", "selective_ac_option": "op"}
    if "mode" in said:
        return selective | said
    if "memory_budget" in said:
        return {"mode": "memory_budget"}
    return selective if "force_recompute_mm_shapes_by_fqns" in said else {"mode": "full"}


def _optimizer(said: Any) -> str | None:
    """The optimizer of the last group of parameters, which takes what the others leave."""
    groups = said.get("param_groups") if isinstance(said, dict) else None
    last = groups[-1] if isinstance(groups, list) and groups else None
    return str(last["optimizer_name"]) if isinstance(last, dict) and "optimizer_name" in last else None


def _within(values: Any, *path: str) -> Any:
    for key in path:
        values = values.get(key) if isinstance(values, dict) else None
    return values


FRAMEWORK = "torchtitan"
SECTIONS = ("job", "model", "training", "parallelism", "activation_checkpoint", "optimizer", "metrics", "profiling")
"""Two of these make a TOML file one of torchtitan."""

_VARIANT = re.compile(r"_(flex|varlen|irope|flex_attn|varlen_attn)(_attn)?$")
_KERNELS = {"flex": "flex", "flex_flash": "flex (flash attention 4)", "irope": "flex", "varlen": "varlen"}
"""Kernels of the backends (``models/common/config_utils.py``) and of the flavors that had them in their names."""
_COMPONENTS, _CHUNKS = "compile.components", "loss.num_chunks"
_NO_DECODERS = ("flux", "vlm")


def is_torchtitan(values: Mapping[str, Any]) -> bool:
    """Whether a mapping is a job configuration of torchtitan."""
    return sum(isinstance(values.get(section), dict) for section in SECTIONS) >= 2


def read_torchtitan(
    values: Mapping[str, Any], path: Path, overrides: Iterable[str], experiment: Experiment
) -> Experiment:
    """``experiment`` with what a job configuration says; its devices come from the hardware that is said.

    Raises:
        ConfigError: a value of the wrong kind, or settings that contradict each other.
        UsageError: an override is not ``section.key=value``.
    """
    saved = is_saved(values)
    named = in_names_of_toml(values) if saved else values
    settings = StackSettings(dotted(named) | overriding(overrides, _name), str(path))
    refuse_unread(settings, path)
    model, notes = _model(settings, path)
    if experiment.model is not None and model.missing():
        model, notes = experiment.model, ()
    plan, more = _plan(settings, experiment, model.layers)
    workload = _workload(settings, plan, mixture=model.is_moe)
    notes += (
        *more,
        *note_on_unmodelled(settings, titan.TABLE.unmodelled),
        *settings.misspelt(),
        *notes_on_own(settings),
    )
    sources = {
        "model": settings.source("model_spec" if saved else "model.flavor"),
        "plan": f"{path.name}: [parallelism]",
        "workload": path.name,
        "workload.sequence_length": settings.source(LENGTH if LENGTH in settings else SEQUENCE),
    }
    read = experiment.knowing(
        *notes, model=model, plan=plan, workload=workload, hyperparameters=settings.harmless(), provenance=sources
    )
    return with_what_is_saved(read, values) if saved else read


_NO_MATTER = re.compile(r"seed|^job\.|folder|path|\.lr$|steps|^metrics\.|dataset|^optimizer\.(?!name)", re.ASCII)
"""Settings that decide neither what a step computes nor how it is laid out."""


def read_started(
    document: Document, given: Mapping[str, str], script: str, overrides: Iterable[str], experiment: Experiment
) -> Experiment:
    """``experiment`` with a job configuration under the settings of a script's command.

    Raises:
        ConfigError: a variable that is not known decides a setting, or like :func:`read_torchtitan`.
    """
    overrides = [*overrides]
    said = {override.partition("=")[0] for override in overrides}
    known = {key: value for key, value in given.items() if is_setting(key) and key not in said}
    unknown = sorted(key for key, value in known.items() if has_substitution(value))
    if decisive := [key for key in unknown if not _NO_MATTER.search(key)]:
        reason = f"sets {', '.join(decisive)} by a variable whose value is not said"
        raise ConfigError(reason, where=script, hint=f"add {decisive[0]}=…")
    settings = [f"{key}={value}" for key, value in known.items() if key not in unknown]
    return read_torchtitan(document.values, document.path, [*settings, *overrides], experiment)


def is_setting(key: str) -> bool:
    """Whether an override is one of torchtitan's settings: ``parallelism.tensor_parallel_degree``."""
    section, _, name = _name(key).partition(".")
    if section == "model":
        return name in ("name", "flavor")
    return bool(name) and section in (*SECTIONS, "compile", "experimental", "loss")


def _name(key: str) -> str:
    return key.removeprefix("--")


def _model(settings: StackSettings, path: Path) -> tuple[Architecture, tuple[str, ...]]:
    """The model behind name and flavor."""
    name, flavor = settings.text("model.name"), settings.text("model.flavor")
    hub = settings.text("hf_transformers.model") or next(
        (word for word in (flavor, name) if word and "/" in word), None
    )
    if name in _NO_DECODERS:
        raise ConfigError(f"trains {name}; only decoders are read", where=settings.where())
    if own := own_shapes(settings):
        title = plain(hub or f"{name} {flavor}", 120)
        note = f"the model is unknown: torchtitan has no {own}, which by its name changes {title}: add {SHAPES}"
        return Architecture(name=title), (note,)
    if hub and (flavor or "").startswith("debug"):
        return Architecture(name=plain(hub, 120)), (f"flavor {plain(flavor, 40)} changes the model: it is unknown",)
    if hub:
        return read_named_model(hub)
    if name is None or flavor is None:
        return Architecture(), ("the model is unknown: the file has no model.name and model.flavor",)
    bare = _VARIANT.sub("", flavor).casefold()
    catalogued = CATALOGUE.get(name, "{}").format(bare)
    known = find_architecture(OTHERS.get(catalogued, catalogued)) if name in CATALOGUE else None
    known = DEBUG_MODEL if bare == "debugmodel" and name == "llama3" else known
    title = plain(f"{name} {flavor}", 120)
    if own := own_model(path, name, flavor, known):
        return own[0], (own[1],)
    if known is None:
        return Architecture(name=title), (f"the model {title} is not in the catalogue: add {SHAPES}",)
    return known.model_copy(update={"name": title}), ()


def _plan(settings: StackSettings, experiment: Experiment, layers: int | None) -> tuple[Plan | None, tuple[str, ...]]:
    devices = experiment.hardware.devices
    if devices is None:
        for key in titan.NAMES:
            settings.get(key)
        return None, (DEVICES_UNKNOWN,)
    try:
        plan = titan.from_settings(settings, devices, layers)
    except InexpressiblePlanError as error:
        return None, (f"the plan is unknown: {error.message}",)
    except PlanError as error:
        raise ConfigError(error.message, where=settings.where(), hint=error.hint) from error
    return plan, _notes_on(settings, plan)


def _notes_on(settings: StackSettings, plan: Plan) -> tuple[str, ...]:
    notes = []
    if plan.remat is None:
        notes.append("what is recomputed is unknown: a memory budget decides it (activation_checkpoint.mode)")
    if folded := tuple(axis for axis in titan.experts_over(settings) if plan.degree(axis) > 1):
        notes.append(f"experts lie over {settings[titan.EXPERT]} devices, here {Degrees.of(plan, folded).expert_axes}")
    return tuple(notes)


def _workload(settings: StackSettings, plan: Plan | None, mixture: bool) -> Workload:
    sharded = plan is not None and plan.degree("data") * plan.degree("expert") > 1
    return Workload(
        global_batch=titan.global_batch_of(settings, plan.batch_shards) if plan else _said_batch(settings),
        sequence_length=settings.count(LENGTH) or settings.count(SEQUENCE, 2048),
        precision=_precision(settings),
        weight_precision="bf16" if settings.text("training.dtype") == "bfloat16" else "fp32",
        optimizer=(settings.text("optimizer.name", "AdamW") or "").casefold(),
        attention=_attention(settings),
        framework=FRAMEWORK,
        zero_stage=3 if sharded else None,
        context_parallel=_context_parallel(settings) if plan and plan.degree("seq") > 1 else None,
        sequence_parallel=plan is not None and plan.degree("model") > 1,
        overlaps_tensor=_overlaps_tensor(settings) if plan and plan.degree("model") > 1 else None,
        compiled=_compiles(settings, "model"),
        compiled_loss=_compiles(settings, "loss"),
        loss_chunks=settings.count(_CHUNKS),
        experts_over=titan.experts_over(settings, mixture),
    )


def _attention(settings: StackSettings) -> str:
    """The kernel that the backend or the flavor names; PyTorch chooses one for the chip where neither does."""
    variant = _VARIANT.search(settings.text("model.flavor") or "")
    said = attention_backend(settings) or (variant and variant[1])
    return _KERNELS.get(str(said), "flash")


def _compiles(settings: StackSettings, component: str) -> bool:
    """Whether a component is compiled: both are by default, ``model`` and ``loss``."""
    enabled = settings.flag("compile.enable", settings.flag("training.compile"))
    return enabled and (_COMPONENTS not in settings or component in settings.words(_COMPONENTS))


def _overlaps_tensor(settings: StackSettings) -> bool:
    """Asynchronous tensor parallelism, which torch.compile makes of the compiled model."""
    name = "enable_async_tensor_parallel"
    said = any(settings.flag(f"{section}.{name}") for section in ("parallelism", "experimental"))
    return said and _compiles(settings, "model")


def _context_parallel(settings: StackSettings) -> ContextParallel:
    """By PyTorch's rotation of keys and values, all at once or shard by shard."""
    key = "parallelism.context_parallel_rotate_method"
    return "ring" if settings.choice(key, ("allgather", "alltoall"), "allgather") == "alltoall" else "all_gather"


def _said_batch(settings: StackSettings) -> int | None:
    said = settings.whole(titan.GLOBAL_BATCH, -1) or -1
    return said if said > 0 else None


def _precision(settings: StackSettings) -> str:
    converters = " ".join([*settings.words("model.converters"), *settings.words("model.converters.print")])
    if "nvfp4" in converters:
        return "fp4"
    switches = (settings.flag(key) for key in titan.TABLE.names["fp8"])
    earlier = any(switches) or settings.text("training.fp8_linear") is not None
    if "float8" in converters or "mx" in converters or earlier:
        return "fp8"
    return "fp32" if settings.text("training.mixed_precision_param") == "float32" else "bf16"
