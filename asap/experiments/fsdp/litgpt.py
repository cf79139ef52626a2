"""LitGPT: ``litgpt finetune_full meta-llama/Llama-3.1-8B --config full.yaml --devices 4``, or its YAML alone
(Lightning-AI/litgpt, ``__main__.py``, ``pretrain.py``, ``finetune/full.py``, ``args.py``)."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from asap.core.errors import ConfigError
from asap.core.text import plain
from asap.experiments.experiment import Experiment
from asap.experiments.files.named_file import Brought, find_named, missing
from asap.experiments.fsdp.litgpt_model import litgpt_model
from asap.experiments.fsdp.reader import read_program
from asap.experiments.fsdp.settled import settled_apart
from asap.experiments.processes import with_devices, with_nodes
from asap.experiments.settings.optimizer_names import moments_of_bits, optimizer_family
from asap.experiments.settings.stack_settings import StackSettings, dotted, overriding
from asap.experiments.several_runs import with_note_on_others
from asap.experiments.shell import Command, has_substitution, read_commands, with_sources, words
from asap.models import Workload
from asap.stacks.registry import spec

_START = re.compile(
    r"(?:^|[\s/])(?:-m\s+)?litgpt(?:[./]|\s+)(?P<task>pretrain(?:_\w+)?|finetune(?:[_./]\w+|\s+(?:full|lora|adapter\w*))?)(?:\.py)?"
    r"(?=\s|$)(?P<rest>.*)",
    re.DOTALL,
)
_PRETRAIN, _FULL = "pretrain", "full"
_TRAIN, _PARTS = {"micro_batch_size", "global_batch_size"}, re.compile(r"(?:lora|adapter)_\w+|quantize")
_SECTIONS = ("train", "eval", "data", "log", "optimizer", "model_config")
_KNOWN = frozenset(
    (
        "model_name", "out_dir", "precision", "initial_checkpoint_dir", "checkpoint_dir", "resume", "devices",
        "num_nodes", "tokenizer_dir", "logger_name", "seed", "access_token", "io", "name", *_SECTIONS,
    )
)  # fmt: skip
_OF_TRAIN = frozenset(
    (
        "save_interval", "log_interval", "global_batch_size", "micro_batch_size", "lr_warmup_steps", "epochs",
        "lr_warmup_fraction", "max_tokens", "max_steps", "max_seq_length", "tie_embeddings", "learning_rate",
        "weight_decay", "beta1", "beta2", "max_norm", "min_lr", "max_time",
    )
)  # fmt: skip
"""Settings under ``train``, of all versions."""
_OF_PRECISION = {"bf16": "bf16", "16": "fp16", "32": "fp32"}
_LENGTH, _DEVICES, _NODES, _PRECISION = "train.max_seq_length", "devices", "num_nodes", "precision"
_ALL = (None, "auto", "-1", -1)
"""Numbers of devices that stand for all that there are."""
_BY_HAND = "give the model, --hardware, --batch, --sequence and --plan"
_INSTEAD = "give a run that trains all parameters: litgpt pretrain, or litgpt finetune_full"


@dataclass(frozen=True)
class _Start:
    """What a command starts: ``pretrain`` or ``finetune_full``, a model or folder by its place, and settings."""

    task: str
    model: str | None
    settings: dict[str, str]


def is_litgpt_script(text: str) -> bool:
    """Whether a script starts a training of LitGPT."""
    return "litgpt" in text and any(map(_is_start, read_commands(text)))


def is_litgpt_file(values: Mapping[str, Any]) -> bool:
    """Whether a mapping is a configuration of LitGPT."""
    train = values.get("train")
    named = {"checkpoint_dir", "model_name", "model_config"} & values.keys()
    return isinstance(train, dict) and bool(_TRAIN & train.keys()) and bool(named) and "precision" in values


def is_setting(key: str) -> bool:
    """Whether an override is one of the settings."""
    return key.removeprefix("--").partition(".")[0] in _KNOWN


def read_litgpt_script(
    text: str, path: Path, overrides: Iterable[str], experiment: Experiment, brought: Brought | None = None
) -> Experiment:
    """``experiment`` with what a script starts, over the YAML that it names.

    Raises:
        ConfigError: adapters are trained, a setting that LitGPT does not have, a YAML that is not there, or a value of
            the wrong kind.
        UsageError: an override is not ``key=value``.
    """
    commands = read_commands(with_sources(text, path.parent, brought))
    starts = [(found, command.line) for command in commands if (found := _start_of(command)) is not None]
    start, line = starts[0]
    values: dict[str, Any] = {}
    if (named := start.settings.get("config")) is not None:
        found = None if has_substitution(named) else find_named(named, path, brought)
        if found is None:
            raise missing("starts LitGPT with", named, path, "lay it beside the script")
        values = dict(found.document().values)
    said = {**dotted(values), **{key: value for key, value in start.settings.items() if key != "config"}}
    if start.model is not None:
        said["model_name" if start.task == _PRETRAIN else "checkpoint_dir"] = start.model
    read = _read(start.task, said, values.get("model_config"), path, overrides, experiment)
    return with_note_on_others(read, path, len(starts), line)


def read_litgpt_file(
    values: Mapping[str, Any], path: Path, overrides: Iterable[str], experiment: Experiment
) -> Experiment:
    """``experiment`` with what a YAML says, of the command that takes such; raises like :func:`read_litgpt_script`."""
    task = "finetune_full" if "checkpoint_dir" in values else _PRETRAIN
    read = _read(task, dotted(values), values.get("model_config"), path, overrides, experiment)
    return read.model_copy(update={"notes": (*read.notes, f"taken as the configuration of litgpt {task}")})


def _read(
    task: str, values: Mapping[str, Any], shapes: Any, path: Path, overrides: Iterable[str], experiment: Experiment
) -> Experiment:
    said = {key: value for key, value in values.items() if value is not None}
    said |= overriding(overrides, lambda key: key.removeprefix("--"))
    _check(task, said, path)
    settings, unsettled = settled_apart(said, path)
    experiment = with_devices(_devices_of(settings, unsettled), experiment)
    each = _each_node(settings, experiment.hardware.devices)
    settings = settings.overridden({_DEVICES: each})
    experiment = with_nodes(each, settings.count(_NODES, 1), experiment)
    alone = experiment.hardware.devices == 1  # without FSDP, and so without recomputation
    tuned = task != _PRETRAIN
    if experiment.model is None:
        found, notes = litgpt_model(settings, shapes)
        experiment = experiment.model_copy(update={"model": found, "notes": (*experiment.notes, *notes)})
    table, of_tuning = spec("litgpt-finetune" if tuned and not alone else "litgpt"), spec("litgpt-finetune").defaults
    defaults = {key: value for key, value in of_tuning.items() if tuned and key.startswith("train.")}
    settings = settings.overridden(defaults | dict(settings))
    read = read_program(settings, table, path, experiment, None, _workload(settings, tuned, unsettled), unsettled)
    if open_ := sorted(unsettled & {_PRECISION, _LENGTH, _DEVICES, _NODES}):
        note = f"set by a variable whose value is not said: {', '.join(open_)}"
        read = read.model_copy(update={"notes": (*read.notes, note)})
    if own := sorted(key for key in said if key.startswith("train.") and key.removeprefix("train.") not in _OF_TRAIN):
        note = f"no LitGPT has {plain(', '.join(own), 80)}: what that changes is not read"
        read = read.model_copy(update={"notes": (*read.notes, note)})
    if tuned and (length := settings.count(_LENGTH)):
        note = f"sequences are cut at {length} tokens ({_LENGTH}); all are taken as that long"
        read = read.model_copy(update={"notes": (*read.notes, note)})
    return read


def _check(task: str, said: Mapping[str, Any], path: Path) -> None:
    part = next((key for key in said if _PARTS.fullmatch(key)), None)
    if task.startswith(f"{_PRETRAIN}_"):
        raise ConfigError(f"starts {plain(task, 40)}, which no LitGPT has", where=str(path), hint=_BY_HAND)
    if part is not None or (task != _PRETRAIN and _FULL not in task):
        shown = plain(part or task, 40)
        raise ConfigError(f"{shown}: training a part of the parameters is not modelled", where=str(path), hint=_INSTEAD)
    if own := sorted({key.partition(".")[0] for key in said} - _KNOWN):
        reason = f"sets what no LitGPT has, so that what it changes is not known: {plain(', '.join(own), 80)}"
        raise ConfigError(reason, where=str(path), hint=_BY_HAND)


def _devices_of(settings: StackSettings, unsettled: frozenset[str]) -> int | None:
    """Of all nodes; ``None`` where LitGPT takes all that there are, or a variable says it."""
    if {_DEVICES, _NODES} & unsettled or settings.get(_DEVICES) in _ALL:
        return None
    return (settings.count(_DEVICES) or 1) * (settings.count(_NODES, 1) or 1)


def _each_node(settings: StackSettings, devices: int | None) -> int | None:
    """Devices of a node: those that are said, or as many as the nodes leave."""
    if settings.get(_DEVICES) not in _ALL:
        return settings.count(_DEVICES)
    nodes = settings.count(_NODES, 1) or 1
    return devices // nodes if devices and not devices % nodes else None


def _workload(settings: StackSettings, tuned: bool, unsettled: frozenset[str]) -> Workload:
    said = (settings.text(_PRECISION) or "bf16-true").casefold()
    number, _, kind = said.partition("-")
    if number not in _OF_PRECISION or kind not in ("true", "mixed", ""):
        reason = f"precision {plain(said, 40)} is not read"
        raise ConfigError(reason, where=settings.where(), hint="such as precision=bf16-true")
    known = _PRECISION not in unsettled
    optimizer = settings.text("optimizer.class_path") or settings.text("optimizer") or "AdamW"
    optimizer = optimizer.rpartition(".")[2]
    return Workload(
        sequence_length=settings.count(_LENGTH),
        precision=_OF_PRECISION[number] if known else None,
        weight_precision="bf16" if known and number == "bf16" and kind == "true" else None,
        optimizer=optimizer_family(optimizer),
        attention="flash",
        compiled=not tuned,
    ).model_copy(update=moments_of_bits(optimizer))


def _is_start(command: Command) -> bool:
    return _start_of(command) is not None


def _start_of(command: Command) -> _Start | None:
    found = None if command.assigns or not command.certain else _START.search(command.text)
    if found is None:
        return None
    said = words(found["rest"])
    settings: dict[str, str] = {}
    for word, after in zip(said, [*said[1:], "--"], strict=True):
        key, equals, value = word.removeprefix("--").partition("=")
        if word.startswith("--"):
            settings[key] = value if equals else "true" if after.startswith("--") else after
    first = said[0] if said and not said[0].startswith("-") else None
    return _Start(re.sub(r"[./\s]+", "_", found["task"]), first, settings)
