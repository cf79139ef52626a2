"""torchtune: ``tune run --nproc_per_node 8 full_finetune_distributed --config llama3_1/8B_full batch_size=4``, or its
YAML alone (pytorch/torchtune, ``recipes/full_finetune_distributed.py``)."""

import re
from collections.abc import Iterable, Mapping
from itertools import pairwise
from pathlib import Path
from typing import Any

from asap.core.errors import ConfigError
from asap.core.text import plain
from asap.experiments.experiment import Experiment
from asap.experiments.files.named_file import Brought, NamedFile, find_named
from asap.experiments.fsdp.reader import read_program
from asap.experiments.fsdp.settled import settled_apart
from asap.experiments.fsdp.torchtune_model import component, torchtune_model
from asap.experiments.processes import with_devices, with_processes
from asap.experiments.settings.optimizer_names import moments_of_bits, optimizer_family
from asap.experiments.settings.stack_settings import dotted, overriding
from asap.experiments.settings.unused_settings import note_on_unused
from asap.experiments.several_runs import with_note_on_others
from asap.experiments.shell import Command, has_substitution, read_commands, with_sources, words
from asap.models import Workload
from asap.stacks.registry import spec

_START = re.compile(r"(?:^|[\s/])tune\s+run\s(?P<rest>.*)", re.DOTALL)
_BY_FILE = re.compile(r"[\s/](?P<rest>\w+_(?:distributed|single_device)(?:\.py)?\s.*--config[\s=].*)", re.DOTALL)
_RECIPE = re.compile(r"(?:^|[\s/.])(?P<recipe>[a-z]\w*_(?:distributed|single_device))(?:\.py)?(?=\s|$)")
_OWN = re.compile(r"\s-m\s+([\w.-]+)|([\w./-]{1,400}\.py)\b")
_WHOLE = re.compile(r"full_finetune_(?:distributed|single_device)")
_BY_HAND = "give the model, --hardware, --batch, --sequence and --plan"
_SHIPPED = "recipes/configs/{}.yaml"
_LENGTH, _PACKED = "tokenizer.max_seq_len", "dataset.packed"
_TRAINS = ("optimizer", "loss", "batch_size")
_OTHERS = (
    "ref_checkpointer",
    "reward_checkpointer",
    "value_checkpointer",
    "teacher_model",
    "ppo_epochs",
    "grpo_samples",
)
_PRECISIONS = {"bf16": "bf16", "bfloat16": "bf16", "fp32": "fp32", "float32": "fp32", "fp16": "fp16"}
_UNUSED = {
    "enable_activation_offloading": False, "optimizer_in_bwd": False, "fsdp_reshard_after_forward": True,
    "enable_fp8_training": False, "ac_mode": "none", "quantizer": False,
}  # fmt: skip
_ASSIGNED = re.compile(r"[A-Za-z_][\w.]*=.*", re.DOTALL)


def is_torchtune_script(text: str) -> bool:
    """Whether a script starts a recipe of torchtune."""
    return "tune" in text and any(map(_is_start, read_commands(text)))


def is_torchtune_file(values: Mapping[str, Any]) -> bool:
    """Whether a mapping is a configuration of a recipe that trains."""
    named = any("torchtune" in component(values.get(key)) for key in ("model", "tokenizer"))
    return named and all(key in values for key in _TRAINS)


def is_setting(key: str) -> bool:
    """Whether an override is a setting; those of a record are in sections of their own."""
    return key.partition(".")[0] not in ("workload", "hardware", "plan", "model", "name", "id")


def read_torchtune_script(
    text: str, path: Path, overrides: Iterable[str], experiment: Experiment, brought: Brought | None = None
) -> Experiment:
    """``experiment`` with what a script starts.

    Raises:
        ConfigError: the recipe does something else than train all parameters on tokens, its YAML is not there, or a
            value of the wrong kind.
        UsageError: an override is not ``key=value``.
    """
    starts = [command for command in read_commands(with_sources(text, path.parent, brought)) if _is_start(command)]
    start = starts[0]
    rest = _rest_of(start)
    recipe = _RECIPE.search(rest)
    if recipe is None and (own := _OWN.search(f" {rest}")) is not None:
        reason = f"starts {plain(own[1] or own[2], 60)} by tune run, which is no recipe of torchtune's"
        raise ConfigError(reason, where=f"{path}:{start.line}", hint=_BY_HAND)
    if recipe is None or not _WHOLE.fullmatch(recipe["recipe"]):
        shown = plain(recipe["recipe"] if recipe else rest, 40)
        reason = f"starts torchtune's {shown}, which does not train all parameters on tokens"
        raise ConfigError(reason, where=f"{path}:{start.line}", hint="give a run of full_finetune_distributed")
    said = words(rest[recipe.end() :])
    given = {word.partition("=")[0]: word.partition("=")[2] for word in said if _ASSIGNED.fullmatch(word)}
    values = _file(said, path, brought).document().values
    alone = recipe["recipe"].endswith("single_device")
    experiment = with_devices(1, experiment) if alone else with_processes(start, experiment)
    read = _read({**dotted(values), **given}, values.get("model"), path, overrides, experiment)
    return with_note_on_others(read, path, len(starts), start.line)


def read_torchtune_file(
    values: Mapping[str, Any], path: Path, overrides: Iterable[str], experiment: Experiment
) -> Experiment:
    """``experiment`` with what a YAML says; raises like :func:`read_torchtune_script`."""
    return _read(dotted(values), values.get("model"), path, overrides, experiment)


def _read(
    values: Mapping[str, Any], model: Any, path: Path, overrides: Iterable[str], experiment: Experiment
) -> Experiment:
    said = {key: value for key, value in values.items() if value is not None} | overriding(overrides)
    _check(said, path)
    settings, unsettled = settled_apart(said, path)
    if experiment.model is None:
        found, notes = torchtune_model(model, settings)
        experiment = experiment.model_copy(update={"model": found, "notes": (*experiment.notes, *notes)})
    length = settings.count(_LENGTH)
    precision = _PRECISIONS.get(settings.text("dtype") or "") if "dtype" not in unsettled else None
    optimizer = settings.text("optimizer") or component(said.get("optimizer._component_")) or "AdamW"
    optimizer = optimizer.rpartition(".")[2]
    workload = Workload(
        sequence_length=length,
        precision=precision,
        weight_precision=precision if precision != "fp32" else None,
        optimizer=optimizer_family(optimizer),
        attention="flash",
        compiled=None if "compile" in unsettled else settings.flag("compile"),
    ).model_copy(update=moments_of_bits(optimizer))
    read = read_program(settings, spec("torchtune"), path, experiment, None, workload, unsettled)
    notes = note_on_unused(settings, _UNUSED)
    if length and not settings.flag(_PACKED):
        notes += (f"sequences are cut at {length} tokens ({_LENGTH}); all are taken as that long",)
    return read.model_copy(update={"notes": (*read.notes, *notes)})


def _check(said: Mapping[str, Any], path: Path) -> None:
    """Raise ConfigError where adapters are trained, or answers are compared."""
    model, loss = str(said.get("model._component_", "")).rpartition(".")[2], str(said.get("loss._component_", ""))
    other = next((key for key in _OTHERS if any(name.partition(".")[0] == key for name in said)), None)
    if re.match(r"(?:q?lora|dora)_", model):
        reason = f"{plain(model, 60)}: training a part of the parameters is not modelled"
        raise ConfigError(reason, where=str(path), hint="give the configuration of a full fine-tuning")
    if other or "rlhf" in loss or "Distill" in loss or "ForwardKL" in loss:
        reason = f"{plain(other or loss, 60)}: training on preferences, rewards or a teacher is not modelled"
        raise ConfigError(reason, where=str(path), hint="give a run that trains on tokens")


def _file(said: list[str], path: Path, brought: Brought | None) -> NamedFile:
    """The YAML that a command takes: a file, or one that torchtune brings along.

    Raises:
        ConfigError: it is not there.
    """
    after = next((word for before, word in pairwise(said) if before == "--config"), None)
    named = after or next((word.partition("=")[2] for word in said if word.startswith("--config=")), "")
    is_file = named.endswith((".yaml", ".yml"))
    found = None if has_substitution(named) else find_named(named if is_file else _SHIPPED.format(named), path, brought)
    if found is not None:
        return found
    shown = plain(named, 80)
    hint = "lay it beside the script" if is_file else f"tune cp {shown} FILE.yaml writes it: give that as --config"
    raise ConfigError(f"starts torchtune with {shown}, which is not there", where=str(path), hint=hint)


def _is_start(command: Command) -> bool:
    return not command.assigns and command.certain and bool(_rest_of(command))


def _rest_of(command: Command) -> str:
    """What follows ``tune run``, or the recipe's own file."""
    found = _START.search(command.text) or _BY_FILE.search(command.text)
    return f" {found['rest']}" if found else ""
