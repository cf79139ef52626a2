"""Scripts that start Meta's llama-recipes: ``torchrun --nproc_per_node 4 finetuning.py --enable_fsdp --model_name …``
(meta-llama/llama-cookbook, ``finetuning.py``, ``configs/training.py``, ``configs/fsdp.py``)."""

import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from asap.core.errors import ConfigError
from asap.core.text import plain
from asap.experiments.accelerate.one_process import is_one_of_several
from asap.experiments.experiment import Experiment
from asap.experiments.files.named_file import Brought
from asap.experiments.fsdp.reader import read_program
from asap.experiments.fsdp.settled import settled_apart
from asap.experiments.processes import environment_of, processes_of, with_devices, with_nodes_of
from asap.experiments.settings.stack_settings import StackSettings, overriding
from asap.experiments.several_runs import with_note_on_others
from asap.experiments.shell import Command, options, read_commands, with_sources
from asap.models import Workload
from asap.stacks.registry import spec

_PROGRAM = re.compile(r"(?:^|[\s/.])(?:llama_)?finetuning(?:\.py)?(?=\s)")
_SIGNS = frozenset(
    (
        "enable_fsdp", "use_peft", "low_cpu_fsdp", "pure_bf16", "batch_size_training", "batching_strategy",
        "use_fast_kernels", "dist_checkpoint_root_folder", "dist_checkpoint_folder", "use_fp16",
    )
)  # fmt: skip
_ENOUGH = 3
"""Signs that make a command of another program one of these."""
_FSDP = "enable_fsdp"
_LENGTH, _STRATEGY, _PACKS = "context_length", "batching_strategy", "packing"
_EARLIER = "micro_batch_size"
_READ = frozenset((_LENGTH, _STRATEGY, _EARLIER, "model_name", "optimizer", "mixed_precision", *_SIGNS))
_ARGUMENTS = frozenset(
    (
        "tokenizer_name", "run_validation", "gradient_clipping", "gradient_clipping_threshold", "num_epochs", "gamma",
        "max_train_step", "max_eval_step", "num_workers_dataloader", "lr", "weight_decay", "seed", "val_batch_size",
        "dataset", "peft_method", "from_peft_checkpoint", "output_dir", "num_freeze_layers", "one_gpu", "save_model",
        "save_optimizer", "use_wandb", "save_metrics", "flop_counter", "flop_counter_start", "use_profiler",
        "profiler_dir", "max_steps_per_epoch", "checkpoint_type", "hsdp", "replica_group_size", "run_name",
    )
)  # fmt: skip
"""Besides those that are read, of all versions."""
_FILE = re.compile(r"\.py[\"']?\s")
_SECTIONS = ("train_config", "fsdp_config")
_PARTLY = {
    "use_peft": "training a part of the parameters",
    "freeze_layers": "training a part of the parameters",
    "freeze_LLM_only": "training a part of the parameters",
    "quantization": "training of quantized weights",
}
_WEIGHTS = "weights are taken as fp32; versions from 2024 on keep what the checkpoint has: add pure_bf16=true if bf16"
_PADDED = "add --sequence with the length of a batch"
_MICRO_BATCH, _SHARDING = "batch_size_training", "sharding_strategy"
_OFF = ("", "0", "false", "none")


def is_llama_recipes_script(text: str) -> bool:
    """Whether a script starts llama-recipes."""
    return any(sign in text for sign in _SIGNS) and any(map(_is_start, read_commands(text)))


def is_setting(key: str) -> bool:
    """Whether an override is one of the arguments."""
    return _name(key) in spec("llama-recipes").words() | _READ


def read_llama_recipes_script(
    text: str, path: Path, overrides: Iterable[str], experiment: Experiment, brought: Brought | None = None
) -> Experiment:
    """``experiment`` with what a script starts.

    Raises:
        ConfigError: not all parameters are trained, processes train apart, or a value of the wrong kind.
        UsageError: an override is not ``key=value``.
    """
    starts = [command for command in read_commands(with_sources(text, path.parent, brought)) if _is_start(command)]
    start, place = starts[0], f"{path}:{starts[0].line}"
    said: dict[str, Any] = {_name(o.name): o.words[0] if o.words else True for o in options(start.text)}
    said |= overriding(overrides, _name)
    for key, what in _PARTLY.items():
        if str(said.get(key, "")).casefold() not in _OFF:
            raise ConfigError(f"{key}: {what} is not modelled", where=place, hint="give a run that trains them all")
    settings, unsettled = settled_apart(said, path)
    processes = processes_of(start)
    several = (processes or 1) > 1 or (processes is None and is_one_of_several(text, environment_of(start)))
    if not settings.flag(_FSDP) and several:
        reason = f"starts {processes or 'several'} processes without --{_FSDP}: each trains a model of its own"
        raise ConfigError(reason, where=place, hint=f"add {_FSDP}=true")
    settings = settings.overridden(_implied(settings, start))
    read = read_program(
        settings,
        spec("llama-recipes"),
        path,
        with_nodes_of(start, with_devices(processes if settings.flag(_FSDP) else 1, experiment)),
        settings.text("model_name"),
        _workload(settings),
        unsettled,
    )
    return with_note_on_others(
        read.model_copy(update={"notes": (*read.notes, *_notes(settings, start))}), path, len(starts), start.line
    )


def _implied(settings: StackSettings, start: Command) -> dict[str, Any]:
    """What follows from the arguments: the group over which a hybrid strategy shards, and nothing where FSDP is off.

    Raises:
        ConfigError: a size that means another thing by version.
    """
    if not settings.flag(_FSDP):
        return {_SHARDING: "NO_SHARD", "fsdp_activation_checkpointing": "false"}
    if settings.count(_EARLIER) not in (None, settings.count(_MICRO_BATCH, 4)):
        reason = f"{_EARLIER} means another thing by version"
        raise ConfigError(reason, where=settings.where(), hint=f"add {_EARLIER}={settings[_MICRO_BATCH]}")
    implied: dict[str, Any] = {}
    if (strategy := settings.text(_SHARDING)) is not None:
        implied[_SHARDING] = strategy.rpartition(".")[2]
    each = next((option.words[0] for option in options(start.text) if option.name == "nproc_per_node"), None)
    if not settings.flag("hsdp") and each:
        implied["sharding_group_size"] = each
    return implied


def _workload(settings: StackSettings) -> Workload:
    pure, half = settings.flag("pure_bf16"), settings.flag("use_fp16")
    mixed = settings.flag("mixed_precision", True) and settings.flag(_FSDP)
    optimizer = (settings.text("optimizer") or "AdamW").casefold()
    kept = "bf16" if pure and optimizer == "anyprecision" else None
    default = 4096 if _STRATEGY in settings else None
    return Workload(
        sequence_length=settings.count(_LENGTH, default) if _packs(settings) else None,
        precision="fp16" if half else "bf16" if pure or mixed else None,
        weight_precision="bf16" if pure else None,
        optimizer="adamw",
        first_moment_precision=kept,
        second_moment_precision=kept,
        attention="flash" if settings.flag("use_fast_kernels") else None,
    )


def _packs(settings: StackSettings) -> bool:
    """Whether sequences are filled to one length; where they are padded, the longest of a batch is that of all."""
    return settings.get(_STRATEGY, _PACKS) == _PACKS


def _own(start: Command) -> tuple[str, ...]:
    """Arguments of a program that are not llama-recipes'."""
    program = _FILE.search(start.text) or _PROGRAM.search(start.text)
    named = (option.name for option in options(start.text[program.end() - 1 :])) if program else ()
    own = (name for name in named if not is_setting(name) and name not in _ARGUMENTS | _PARTLY.keys())
    return tuple(name for name in own if "." not in name)


def _notes(settings: StackSettings, start: Command) -> tuple[str, ...]:
    notes: list[str] = []
    if own := _own(start):
        notes.append(f"llama-recipes has no {plain(', '.join(own), 80)}: what that changes is not read")
    if not settings.flag("pure_bf16") and settings.flag(_FSDP):
        notes.append(_WEIGHTS)
    if _LENGTH in settings and not _packs(settings):
        notes.append(f"{_LENGTH} counts where sequences are packed, and here they are padded: {_PADDED}")
    return tuple(notes)


def _is_start(command: Command) -> bool:
    if command.assigns or not command.certain or "--per_device_train" in command.text:
        return False
    signs = len(_SIGNS & {_name(option.name) for option in options(command.text)})
    return signs >= (1 if _PROGRAM.search(command.text) else _ENOUGH)


def _name(key: str) -> str:
    section, _, name = key.removeprefix("--").partition(".")
    return name if section in _SECTIONS else section
