"""LLM Foundry under Composer, and OLMo, which took its names: ``composer train.py 7b.yaml max_seq_len=4096``,
``torchrun scripts/train.py OLMo-7B.yaml --device_train_microbatch_size=2``, a run of MosaicML, or the YAML alone
(mosaicml/llm-foundry, ``llmfoundry/command_utils/train.py``; allenai/OLMo, ``olmo/config.py``)."""

import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from asap.core.errors import ConfigError
from asap.core.text import plain
from asap.experiments.experiment import Experiment
from asap.experiments.files.named_file import Brought, below_variable, find_named, missing
from asap.experiments.fsdp.composer_model import foundry_model, olmo_model
from asap.experiments.fsdp.reader import read_program
from asap.experiments.fsdp.settled import settled_apart
from asap.experiments.processes import processes_of, with_devices, with_nodes_of
from asap.experiments.settings.optimizer_names import optimizer_family
from asap.experiments.settings.stack_settings import StackSettings, dotted, overriding
from asap.experiments.settings.unused_settings import note_on_unused
from asap.experiments.several_runs import with_note_on_others
from asap.experiments.shell import Command, has_substitution, options, read_commands, with_sources, words
from asap.models import Workload
from asap.stacks.registry import spec

_BATCH = {"global_train_batch_size", "device_train_microbatch_size"}
_START = re.compile(r"(?:^|[\s/])composer\s(?:.*?\s)?\S+\.py\s+(?P<said>['\"]?\S+\.ya?ml\b.*)", re.DOTALL)
_ASSIGNED = re.compile(r"(?:--)?([A-Za-z_][\w.]*)=(.*)", re.DOTALL)
_REFERENCE = re.compile(r"\$\{([A-Za-z_][\w.]*)\}", re.ASCII)
_DEEPEST = 4
_AUTO = "auto"
_PRECISIONS = {"amp_bf16": "bf16", "amp_fp16": "fp16", "fp32": "fp32", "amp_fp8": "fp8"}
_REPLICAS = "fsdp.hybrid_sharding_num_model_replicas"
_ADAPTERS, _TENSOR, _RECOMPUTE = "model.peft_config", "tp_config", "activation_checkpointing"
_UNUSED = {"fsdp_config.activation_cpu_offload": False, "model.l0_module": False}
_INSTEAD = "give the model, --hardware, --batch, --sequence and --plan"


def is_foundry_file(values: Mapping[str, Any]) -> bool:
    """Whether a mapping is a configuration of LLM Foundry that trains, or MosaicML's run of one."""
    said = _parameters(values)
    return values_have(said, "train_loader", "model") and said.keys() >= _BATCH


def is_olmo_file(values: Mapping[str, Any]) -> bool:
    """Whether a mapping is a configuration of OLMo."""
    model = values.get("model")
    return (
        isinstance(model, dict)
        and {"d_model", "n_heads", "n_layers"} <= model.keys()
        and (values.keys() >= _BATCH and "train_loader" not in values)
    )


def has_olmo_options(names: Iterable[str]) -> bool:
    """Whether options of a command are settings of OLMo's."""
    return any(name in _BATCH or name.startswith("fsdp.") for name in names)


def values_have(values: Mapping[str, Any], *sections: str) -> bool:
    """Whether a mapping has sections of these names."""
    return all(isinstance(values.get(section), dict) for section in sections)


def is_composer_script(text: str) -> bool:
    """Whether a script starts a program with a YAML under Composer."""
    return "composer" in text and any(map(_is_start, read_commands(text)))


def is_setting(key: str) -> bool:
    """Whether an override is a setting; those of a record are in sections of their own."""
    return key.removeprefix("--").partition(".")[0] not in ("workload", "hardware", "plan", "model", "name", "id")


def read_composer_script(
    text: str, path: Path, overrides: Iterable[str], experiment: Experiment, brought: Brought | None = None
) -> Experiment:
    """``experiment`` with what a script starts.

    Raises:
        ConfigError: its YAML is not there, or none of LLM Foundry or OLMo; adapters are trained, or a value is of the
            wrong kind.
        UsageError: an override is not ``key=value``.
    """
    starts = [command for command in read_commands(with_sources(text, path.parent, brought)) if _is_start(command)]
    start = starts[0]
    said = words(_START.search(start.text)["said"])  # pyright: ignore[reportOptionalSubscript]
    named = below_variable(said[0])
    found = None if has_substitution(named) else find_named(named, path, brought)
    if found is None:
        raise missing("starts Composer with", named, path, "lay it beside the script, or give it as --config")
    values = found.document().values
    given = {pair[1]: pair[2] for word in said[1:] if (pair := _ASSIGNED.fullmatch(word))}
    ranks = next((option.words[0] for option in options(start.text) if option.name == "world_size"), "")
    devices = int(ranks) if ranks.isdecimal() else processes_of(start)
    each = next((option.words[0] for option in options(start.text) if option.name == "nproc"), None)
    read = _read(values, given, each, path, overrides, with_nodes_of(start, with_devices(devices, experiment)))
    return with_note_on_others(read, path, len(starts), start.line)


def read_composer_file(
    values: Mapping[str, Any], path: Path, overrides: Iterable[str], experiment: Experiment
) -> Experiment:
    """``experiment`` with what a YAML says; raises like :func:`read_composer_script`."""
    compute = values.get("compute")
    gpus = compute.get("gpus") if isinstance(compute, dict) else None
    devices = gpus if isinstance(gpus, int) and 0 < gpus < 1_000_000 else None
    return _read(_parameters(values), {}, None, path, overrides, with_devices(devices, experiment))


def _read(
    values: Mapping[str, Any],
    given: Mapping[str, str],
    each: str | None,
    path: Path,
    overrides: Iterable[str],
    experiment: Experiment,
) -> Experiment:
    if not (is_foundry_file(values) or is_olmo_file(values)):
        raise ConfigError("starts a program with a YAML of no stack that is read", where=str(path), hint=_INSTEAD)
    foundry = is_foundry_file(values)
    table, section = (spec("llm-foundry"), "fsdp_config") if foundry else (spec("olmo"), "fsdp")
    node = "nproc" if foundry else "nproc_per_node"
    said = dotted(values) | dict(given) | overriding(overrides, lambda key: key.removeprefix("--"))
    said = {key: resolved(value, said) for key, value in said.items()}
    said = {key: value for key, value in said.items() if value is not None and str(value) != "null"}
    found_out = [key for key in _BATCH if said.get(key) == _AUTO]
    said = {key: value for key, value in said.items() if key not in found_out}
    settings, unsettled = settled_apart(said, path)
    _check(settings)
    sharded = values.get("fsdp_config") is not None if foundry else settings.get("distributed_strategy") != "ddp"
    implied: dict[str, Any] = {} if sharded else {f"{section}.sharding_strategy": "NO_SHARD"}
    if each is not None and not has_substitution(each):
        implied[node] = each
    replicas, devices = settings.count(_REPLICAS), experiment.hardware.devices
    if replicas and devices and not devices % replicas:
        implied[node] = devices // replicas
    partly = settings.text(_RECOMPUTE, "null") if not foundry else "null"
    settings = settings.overridden(implied)
    if experiment.model is None:
        found, notes = foundry_model(settings) if foundry else olmo_model(settings)
        experiment = experiment.model_copy(update={"model": found, "notes": (*experiment.notes, *notes)})
    workload = _workload(settings, foundry)
    read = read_program(settings, table, path, experiment, None, workload, unsettled)
    notes = note_on_unused(settings, _UNUSED)
    notes += tuple(f"{key}={_AUTO} is found by the run: add {key}=N" for key in found_out)
    if partly not in ("whole_layer", "null"):
        notes += (f"{_RECOMPUTE}={plain(partly, 40)} is not modelled: what is recomputed stays unknown",)
    return read.model_copy(update={"notes": (*read.notes, *notes)})


def resolved(value: Any, said: Mapping[str, Any], deeper: int = _DEEPEST) -> Any:
    """A value with what it refers to: ``${variables.max_seq_len}``; as it is where that is not said."""
    found = _REFERENCE.fullmatch(value) if isinstance(value, str) and deeper else None
    return resolved(said[found[1]], said, deeper - 1) if found and found[1] in said else value


def _check(settings: StackSettings) -> None:
    adapters = next((key for key in settings if key.startswith((_ADAPTERS, "peft_config"))), None)
    if adapters is not None:
        reason = f"{plain(adapters, 60)}: training a part of the parameters is not modelled"
        raise ConfigError(reason, where=settings.where(), hint="give a run that trains all parameters")
    if any(key.partition(".")[0] == _TENSOR for key in settings):
        raise ConfigError(f"{_TENSOR}: tensor parallelism under Composer is not read", hint=_INSTEAD)


def _workload(settings: StackSettings, foundry: bool) -> Workload:
    lengths = ("max_seq_len", "train_loader.dataset.max_seq_len") if foundry else ("model.max_sequence_length",)
    length = next((settings.count(key) for key in lengths if key in settings), None)
    said = settings.text("precision", "amp_bf16")
    if said not in _PRECISIONS:
        raise ConfigError(f"precision {plain(said, 40)} is not read", where=settings.where(), hint="such as amp_bf16")
    kept = settings.text("master_weights_dtype") in ("bf16", "bfloat16")
    own = foundry and "model.pretrained_model_name_or_path" not in settings
    kernel = settings.text("model.attn_config.attn_impl", "flash" if own else None)
    flash = settings.flag("model.flash_attention") if not foundry else kernel == "flash"
    return Workload(
        sequence_length=length,
        precision=_PRECISIONS[said or ""],
        weight_precision="bf16" if kept else None,
        optimizer=optimizer_family(settings.text("optimizer.name")),
        attention="flash" if flash or settings.flag("model.use_flash_attention_2") else None,
        compiled=any(key.startswith(("compile_config", "compile.")) for key in settings),
    )


def _is_start(command: Command) -> bool:
    return not command.assigns and command.certain and _START.search(command.text) is not None


def _parameters(values: Mapping[str, Any]) -> Mapping[str, Any]:
    """The configuration in a run of MosaicML's, else the mapping itself."""
    said = values.get("parameters")
    return said if isinstance(said, dict) and "command" in values else values
