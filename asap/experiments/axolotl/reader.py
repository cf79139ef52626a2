"""An experiment from Axolotl's YAML (axolotl-ai-cloud/axolotl, ``src/axolotl/utils/schemas/config.py``)."""

import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from asap.core.errors import ConfigError, PlanError
from asap.core.text import plain
from asap.experiments.accelerate.trainer_fsdp import ACCELERATOR
from asap.experiments.deepspeed.named_configuration import read_named_configuration, with_note_on_shipped
from asap.experiments.deepspeed.training_arguments import read_with_arguments
from asap.experiments.experiment import Experiment
from asap.experiments.named_model import read_named_model
from asap.experiments.settings.optimizer_names import moments_of_bits, optimizer_family
from asap.experiments.settings.stack_settings import StackSettings, dotted, overriding
from asap.models import Workload
from asap.plans.axolotl import settings as axolotl
from asap.plans.deepspeed import settings as zero
from asap.plans.deepspeed.trainer import RECOMPUTE, TRAINER_ACCUMULATION, TRAINER_MICRO_BATCH
from asap.plans.degrees import InexpressiblePlanError
from asap.plans.plan import Plan, Remat

FRAMEWORK = "Axolotl FSDP"
_MARKS = frozenset(("sequence_len", "micro_batch_size", "datasets", "pretraining_dataset", "adapter"))
_MODEL, _SEQUENCE, _CONFIG = "base_model", "sequence_len", "deepspeed"
_OTHER_TRAINING = ("adapter", "unfrozen_parameters", "rl", "reward_model", "process_reward_model", "lisa_n_layers")
_PLUGINS = {
    "spectrum": "trains a part of the parameters",
    "kd": "distils another model",
    "diffusion": "trains by diffusion",
    "densemixer": "computes all experts",
    "mora": "trains adapters",
}
"""Axolotl's own (``src/axolotl/integrations``) that change what a step does, by the name of their package."""
_READ = frozenset(
    [
        axolotl.SHARD, axolotl.REPLICATE, axolotl.TENSOR, axolotl.CONTEXT, axolotl.EARLIER_CONTEXT, axolotl.EXPERT,
        axolotl.MICRO_BATCH, axolotl.ACCUMULATION, axolotl.RECOMPUTE, axolotl.OFFLOAD_ACTIVATIONS, axolotl.FSDP,
        axolotl.FSDP_CONFIG, _MODEL, _SEQUENCE, _CONFIG, *_OTHER_TRAINING, "bf16", "bfloat16", "fp16", "float16", "fp8",
        "optimizer", "sample_packing", "pad_to_sequence_len", ACCELERATOR,
    ]
)  # fmt: skip
_SYNCS = "accelerator_config.gradient_accumulation_kwargs.sync_each_batch"
_INTEGRATIONS = "axolotl.integrations."
_VERSIONS = ("fsdp_version", "fsdp_config.fsdp_version", "fsdp_config.version")
_FUSED_LOSSES = ("liger_fused_linear_cross_entropy", "cut_cross_entropy")
_OFF = ("", "none", "false", "0")
_FEW_BITS = re.compile(r"(?<!\d)[48]-?bit$")


def is_axolotl(values: Mapping[str, Any]) -> bool:
    """Whether a mapping is a configuration of Axolotl."""
    return _MODEL in values and bool(_MARKS & values.keys())


def is_setting(key: str) -> bool:
    """Whether an override is one of Axolotl's settings: ``fsdp_config.offload_params``."""
    return key.partition(".")[0] in _READ


def read_axolotl(values: Mapping[str, Any], path: Path, overrides: Iterable[str], experiment: Experiment) -> Experiment:
    """``experiment`` with what a configuration says; its devices come from the hardware that is said.

    Raises:
        ConfigError: it trains a part of the parameters, or otherwise than on tokens; it contradicts itself, or names a
            DeepSpeed configuration that is not there.
        UsageError: an override is not ``key=value``.
    """
    settings = StackSettings(dotted(values) | overriding(overrides), str(path))
    _check_trains_all(settings)
    if experiment.model is None and (name := settings.text(_MODEL)):
        model, notes = read_named_model(name)
        experiment = experiment.model_copy(update={"model": model, "notes": (*experiment.notes, *notes)})
    named = settings.get(_CONFIG, values.get(_CONFIG))
    read = _with_deepspeed(settings, named, path, experiment) if named else _with_fsdp(settings, path, experiment)
    said = {
        "sequence_length": settings.count(_SEQUENCE),
        "precision": _precision(settings),
        "attention": _attention(settings),
        "compiled_loss": axolotl.is_on(settings, "torch_compile"),
        "fused_linear_cross_entropy": any(axolotl.is_on(settings, key) for key in _FUSED_LOSSES) or None,
        "context_parallel": "ring" if _sharing_a_sequence(settings) > 1 else None,
        "optimizer": optimizer_family(settings.text("optimizer")),
        **moments_of_bits(settings.text("optimizer")),
    }
    sources = {"model": settings.source(_MODEL), "workload.sequence_length": settings.source(_SEQUENCE)}
    return read.model_copy(
        update={
            "workload": read.workload.model_copy(update=said),
            "provenance": read.provenance | sources,
            "notes": (*read.notes, *_notes_on(settings), *settings.misspelt()),
        }
    )


def _check_trains_all(settings: StackSettings) -> None:
    said = next((key for key in _OTHER_TRAINING if str(settings.get(key) or "").casefold() not in _OFF), None)
    if said is not None:
        shown = plain(str(settings[said]), 40)
        reason = f"{said}: {shown}: adapters, parts of the parameters, preferences and rewards are not modelled"
        raise ConfigError(reason, where=settings.where(said), hint="give a run that trains all of them on tokens")
    packages = (name.removeprefix(_INTEGRATIONS).partition(".")[0] for name in settings.words("plugins"))
    plugin = next((name for name in packages if name in _PLUGINS), None)
    if plugin is not None:
        reason = f"the plugin {plugin} {_PLUGINS[plugin]}, which is not modelled"
        raise ConfigError(reason, where=settings.where("plugins"), hint="give a run that trains all of them on tokens")


def _with_fsdp(settings: StackSettings, path: Path, experiment: Experiment) -> Experiment:
    plan, batch, notes = _plan_and_batch(settings, experiment.hardware.devices)
    sharded = axolotl.is_sharded(settings)
    workload = Workload(
        global_batch=batch,
        weight_precision="bf16" if _keeps_bf16(settings, sharded) else None,
        framework=FRAMEWORK,
        zero_stage=3 if sharded else 0,
        sync_each_batch=settings.flag(_SYNCS) if sharded and _SYNCS in settings else None,
    )
    return experiment.model_copy(
        update={
            "plan": plan,
            "workload": workload,
            "hyperparameters": experiment.hyperparameters | settings.harmless(),
            "provenance": experiment.provenance
            | {"plan": f"{path.name}: fsdp_config and sizes", "workload": path.name},
            "notes": (*experiment.notes, *notes),
        }
    )


def _plan_and_batch(settings: StackSettings, devices: int | None) -> tuple[Plan | None, int | None, tuple[str, ...]]:
    """Both, where they can be known, and what is to be said of them."""
    if devices is None:
        return None, None, ("how many devices there are is not said: add --hardware, such as h100-64",)
    try:
        plan = axolotl.from_settings(settings, devices)
        return plan, axolotl.global_batch_of(settings, plan), ()
    except InexpressiblePlanError as error:
        return None, None, (f"the plan is unknown: {error.message}",)
    except PlanError as error:
        raise ConfigError(error.message, where=settings.where(), hint=error.hint) from error


def _with_deepspeed(settings: StackSettings, named: Any, path: Path, experiment: Experiment) -> Experiment:
    """With the DeepSpeed configuration that is named; what it leaves ``auto`` Axolotl's settings fill."""
    sizes = {zero.TENSOR: settings.count(axolotl.TENSOR, 1), zero.SEQUENCE: _sharing_a_sequence(settings)}
    sizes = {key: value for key, value in sizes.items() if value != 1}
    micro = settings.count(axolotl.MICRO_BATCH, 1)
    arguments = StackSettings(
        {
            TRAINER_MICRO_BATCH: micro,
            TRAINER_ACCUMULATION: settings.count(axolotl.ACCUMULATION, 1),
            RECOMPUTE: axolotl.is_on(settings, axolotl.RECOMPUTE),
        },
        str(path),
    )
    configuration = {**read_named_configuration(named, path), **sizes}
    read = read_with_arguments(configuration, arguments, path, (), experiment, of_yaml=True)
    read = with_note_on_shipped(read, named, path)
    kept = {key: value for key, value in read.hyperparameters.items() if key != TRAINER_MICRO_BATCH}
    recorded = kept | settings.harmless() | {axolotl.MICRO_BATCH: micro}
    plan = read.plan
    if plan is not None and plan.remat is Remat.FULL and axolotl.offloads_activations(settings):
        plan = plan.model_copy(update={"offload": (*plan.offload, "activations")})
    return read.model_copy(update={"hyperparameters": recorded, "plan": plan})


def _sharing_a_sequence(settings: StackSettings) -> int:
    return settings.count(axolotl.context_key(settings)) or 1


def _precision(settings: StackSettings) -> str:
    """Of matrix products; ``bf16: auto``, the default, is bf16 from Ampere on."""
    if axolotl.is_on(settings, "fp8"):
        return "fp8"
    if axolotl.is_on(settings, "fp16") or axolotl.is_on(settings, "float16"):
        return "fp16"
    said = settings.get("bf16", settings.get("bfloat16", "auto"))
    return "fp32" if str(said).casefold() == "false" else "bf16"


def _keeps_bf16(settings: StackSettings, sharded: bool) -> bool:
    """Whether weights and gradients stay in the bf16 that they are loaded in (``utils/config/__init__.py``).

    Version 1 of FSDP turns weights into fp32 (accelerate's ``prepare_model``), version 2 does not
    (``monkeypatch/accelerate/fsdp2.py``).
    """
    if settings.text("bf16") == "full":
        return True
    first = sharded and not any(settings.text(key) == "2" for key in _VERSIONS)
    return not first and _precision(settings) in ("bf16", "fp8")


def _attention(settings: StackSettings) -> str | None:
    said = settings.text("attn_implementation", "") or ""
    if "flash" in said or axolotl.is_on(settings, "flash_attention"):
        return "flash"
    return said or None


def _notes_on(settings: StackSettings) -> tuple[str, ...]:
    notes = []
    if not (axolotl.is_on(settings, "sample_packing") or axolotl.is_on(settings, "pad_to_sequence_len")):
        length = settings.get(_SEQUENCE)
        notes.append(f"sequences are cut at {length} tokens ({_SEQUENCE}); all are taken as that long")
    if _FEW_BITS.search(optimizer := settings.text("optimizer", "") or "") and not moments_of_bits(optimizer):
        notes.append(f"optimizer {plain(optimizer, 40)}: the few bits of its state are counted as 32")
    if any(key.startswith("overrides_of_model_config.") for key in settings):
        notes.append("overrides_of_model_config is not read: the model is taken as published")
    if any(key.startswith("qat.") for key in settings):
        notes.append("qat: weights and activations that are quantized and back are not modelled")
    if axolotl.keeps_gathered(settings):
        notes.append("weights that stay gathered until the backward pass are not modelled: taken as gathered twice")
    return tuple(notes)
