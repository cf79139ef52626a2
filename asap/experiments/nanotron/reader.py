"""An experiment from a nanotron configuration (huggingface/nanotron, ``src/nanotron/config/config.py``)."""

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from asap.core.errors import ConfigError, PlanError
from asap.core.text import plain
from asap.experiments.attention_variants import variants_of_attention
from asap.experiments.experiment import Experiment
from asap.experiments.files.documents import Document, validation_reason
from asap.experiments.huggingface.reader import read_huggingface
from asap.experiments.named_model import SHAPES
from asap.experiments.settings.stack_settings import StackSettings, dotted, overriding
from asap.models import Architecture, Workload
from asap.models.workload import ContextParallel
from asap.plans.degrees import InexpressiblePlanError
from asap.plans.nanotron import settings as nanotron
from asap.plans.plan import Plan

FRAMEWORK = "nanotron"
_SECTIONS = frozenset(("parallelism", "tokens", "model", "optimizer"))
_DEGREES = frozenset(("dp", "tp", "pp"))
_FAMILIES = {"is_llama_config": "llama", "is_qwen2_config": "qwen2", "is_starcoder2_config": "starcoder2"}
_UNGATED = "starcoder2"
_RENAMED = {"num_kv_heads": "num_key_value_heads", "n_inner": "intermediate_size"}
"""Of Starcoder2's configuration (``src/nanotron/config/models_config.py``), which also has ``multi_query``."""
_KNOWN = _SECTIONS | {
    "checkpoints", "data", "data_stages", "doremi", "general", "lighteval", "logging", "metrics_logging", "profiler",
    "s3_upload", "tokenizer",
}  # fmt: skip
"""Sections of all versions (``src/nanotron/config/config.py``), and of its examples."""
_MODEL, _MIXTURE = "model.model_config", "model.model_config.moe_config"
_CONTEXT_PARALLEL: Mapping[str, ContextParallel] = {
    "ring": "ring", "ring_flash_triton": "ring", "llama3_ring_attention": "all_gather",
}  # fmt: skip


def is_nanotron(values: Mapping[str, Any]) -> bool:
    """Whether a mapping is a configuration of nanotron."""
    parallelism = values.get("parallelism")
    return isinstance(parallelism, dict) and parallelism.keys() >= _DEGREES and "tokens" in values


def is_setting(key: str) -> bool:
    """Whether an override is one of nanotron's settings: ``parallelism.tp``."""
    section, _, name = key.partition(".")
    return section in _SECTIONS and bool(name) and (section != "model" or key.startswith(_MODEL))


def read_nanotron(
    values: Mapping[str, Any], path: Path, overrides: Iterable[str], experiment: Experiment
) -> Experiment:
    """``experiment`` with what a configuration says.

    Raises:
        ConfigError: a value of the wrong kind, no decoder that is read, or degrees for another number of devices.
        UsageError: an override is not ``section.key=value``.
    """
    settings = StackSettings(dotted(values) | overriding(overrides), str(path))
    experiment = _with_model(settings, path, experiment)
    plan, notes = _plan(settings)
    experiment = _with_devices(settings, plan, experiment)
    workload = _workload(settings)
    variants = variants_of_attention(settings)
    own = [plain(key, 40) for key, value in values.items() if key not in (*_KNOWN, *variants) and value is not None]
    if own:
        notes += (f"not read, as no nanotron has it, so that what it changes is not known: {', '.join(own[:8])}",)
    sources = {"plan": f"{path.name}: parallelism", "workload": path.name}
    sources["workload.sequence_length"] = settings.source("tokens.sequence_length")
    return experiment.model_copy(
        update={
            "plan": plan,
            "workload": workload,
            "hyperparameters": experiment.hyperparameters | settings.harmless(),
            "provenance": experiment.provenance | sources,
            "notes": (*experiment.notes, *notes, *settings.misspelt()),
        }
    )


def _with_model(settings: StackSettings, path: Path, experiment: Experiment) -> Experiment:
    """The decoder of ``model.model_config``, whose keys are those of a Hugging Face ``config.json``."""
    config = {key.removeprefix(f"{_MODEL}."): settings[key] for key in settings if key.startswith(f"{_MODEL}.")}
    if not config:
        reason = f"has no {_MODEL}, where nanotron has the shapes of its model"
        hint = f"give the model as {SHAPES} without the file, and --hardware, --batch, --sequence and --plan"
        raise ConfigError(reason, where=settings.where(), hint=hint)
    family = next((family for key, family in _FAMILIES.items() if config.get(key) is True), None)
    if family is None:
        raise ConfigError(
            f"model.model_config is of no kind that is read: {', '.join(_FAMILIES)}", where=settings.where()
        )
    config |= {theirs: config[own] for own, theirs in _RENAMED.items() if config.get(own) is not None}
    if family == _UNGATED and isinstance(config.get("hidden_size"), int):
        config.setdefault("intermediate_size", 4 * config["hidden_size"])
    if config.get("multi_query") is True:
        config["num_key_value_heads"] = 1
    experiment = read_huggingface(Document(path, config | {"model_type": family}, {}), experiment)
    assert experiment.model is not None
    return experiment.model_copy(update={"model": _with_experts(settings, experiment.model)})


def _with_experts(settings: StackSettings, model: Architecture) -> Architecture:
    """The model with what Qwen2's configuration has under names of nanotron: a window of all layers, and experts."""
    fields: dict[str, Any] = {"sliding_window": settings.count(f"{_MODEL}.sliding_window_size")}
    if (experts := settings.count(f"{_MIXTURE}.num_experts")) is not None:
        width = settings.count(f"{_MIXTURE}.moe_intermediate_size", 1408) or 1
        shared = settings.flag(f"{_MIXTURE}.enable_shared_expert")
        shared_width = settings.count(f"{_MIXTURE}.shared_expert_intermediate_size", 5632) or 1
        layers = settings.get(f"{_MIXTURE}.layers", [-1])
        if layers != [-1] and not (
            isinstance(layers, list) and len(layers) == model.layers and layers == [*range(len(layers))]
        ):
            raise settings.wrong(f"{_MIXTURE}.layers", "all layers ([-1])")
        fields |= {
            "experts": experts,
            "experts_per_token": settings.count(f"{_MIXTURE}.top_k", 2),
            "expert_d_ff": width,
            "shared_experts": round(shared_width / width) if shared else 0,
        }
    said = {field: value for field, value in fields.items() if value is not None}
    try:
        return Architecture.model_validate(model.model_dump() | said)
    except ValidationError as error:
        raise ConfigError(validation_reason(error), where=settings.where()) from error


def _plan(settings: StackSettings) -> tuple[Plan | None, tuple[str, ...]]:
    try:
        return nanotron.from_settings(settings), ()
    except InexpressiblePlanError as error:
        return None, (f"the plan is unknown: {error.message}",)
    except PlanError as error:
        raise ConfigError(error.message, where=settings.where(), hint=error.hint) from error


def _with_devices(settings: StackSettings, plan: Plan | None, experiment: Experiment) -> Experiment:
    """The devices are the product of the degrees; the hardware that is said must have as many."""
    devices = experiment.hardware.devices
    if plan is None or devices == plan.devices:
        return experiment
    if devices is not None:
        hint = f"change a degree on the command line, such as {nanotron.DATA}=…"
        reason = f"dp x tp x pp x context_parallel_size is {plan.devices}, and the hardware has {devices} devices"
        raise ConfigError(reason, where=settings.where(), hint=hint)
    hardware = experiment.hardware.model_copy(update={"devices": plan.devices})
    return experiment.model_copy(update={"hardware": hardware})


def _workload(settings: StackSettings) -> Workload:
    try:
        batch = nanotron.global_batch_of(settings)
    except PlanError as error:
        raise ConfigError(error.message, where=settings.where()) from error
    attention = settings.text(f"{_MODEL}._attn_implementation", "flash_attention_2") or ""
    sharded_sequence = (settings.count(nanotron.CONTEXT) or 1) > 1
    reduces = (settings.text("parallelism.tp_mode") or "").casefold() == "reduce_scatter"
    fp32_gradients = settings.flag("optimizer.accumulate_grad_in_fp32")
    return Workload(
        global_batch=batch,
        sequence_length=settings.count("tokens.sequence_length"),
        precision=_precision(settings),
        gradient_precision="fp32" if fp32_gradients else None,
        optimizer=(settings.text("optimizer.optimizer_factory.name", "adamW") or "").casefold(),
        attention="flash",
        framework=FRAMEWORK,
        zero_stage=_zero_stage(settings),
        context_parallel=_CONTEXT_PARALLEL.get(attention) if sharded_sequence else None,
        sequence_parallel=reduces and (settings.count(nanotron.TENSOR) or 1) > 1,
    )


def _zero_stage(settings: StackSettings) -> int:
    """Above 0 the optimizer's state is sharded, and nothing else (``src/nanotron/helpers.py``)."""
    said = settings.whole("optimizer.zero_stage", 0) or 0
    if said < 0:
        raise settings.wrong("optimizer.zero_stage", "a stage of ZeRO")
    return min(said, 1)


def _precision(settings: StackSettings) -> str:
    said = settings.text("model.dtype", "bfloat16") or ""
    return {"bfloat16": "bf16", "float16": "fp16", "float32": "fp32", "double": "fp64"}.get(said, said)
