"""Scripts that start llm-recipes: ``mpirun -np 16 python examples/finetuning.py --base-model … --sharding-strategy …``
(okoge-kaz/llm-recipes, ``src/llama_recipes/arguments.py``)."""

import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from asap.core.errors import ConfigError
from asap.core.numbers import digits
from asap.experiments.experiment import Experiment
from asap.experiments.files.named_file import Brought
from asap.experiments.fsdp.reader import read_program
from asap.experiments.fsdp.settled import settled_apart
from asap.experiments.processes import processes_of, with_devices, with_nodes_of
from asap.experiments.settings.stack_settings import overriding
from asap.experiments.several_runs import with_note_on_others
from asap.experiments.shell import Command, options, read_commands, with_sources
from asap.models import Workload
from asap.stacks.registry import spec

_SIGNS = frozenset(("base_model", "micro_batch_size", "sharding_strategy", "low_cpu_fsdp", "grad_clip_norm"))
"""Three of these make a command one of llm-recipes."""
_READ = frozenset(("seq_length", "bf16", "fp16", "param_dtype", "optimizer", "mixed_precision", *_SIGNS))
_MPI = ("mpirun", "mpiexec")
_PROCESSES = re.compile(r"\s--?n(?:p|umber)?[\s=]+(\d+)", re.ASCII)
_SHARDED_BY_DEEPSPEED = ("use_zero", "zero_config", "zero_stage")
"""Of moe-recipes, whose other arguments are the same (rioyokotalab/moe-recipes, ``src/llama_recipes/arguments.py``)."""
_NOT_MODELLED = {
    "direct_preference_optimization": "training on preferences",
    "quantization": "training of quantized weights",
    "use_freeze_layers": "training a part of the parameters",
}


def is_recipes_script(text: str) -> bool:
    """Whether a script starts llm-recipes."""
    return "--base-model" in text and any(_is_start(command) for command in read_commands(text))


def is_setting(key: str) -> bool:
    """Whether an override is one of the arguments."""
    return _name(key) in spec("llm-recipes").words() | _READ


def read_recipes_script(
    text: str, path: Path, overrides: Iterable[str], experiment: Experiment, brought: Brought | None = None
) -> Experiment:
    """``experiment`` with what a script starts.

    Raises:
        ConfigError: not all parameters are trained on tokens, or a value of the wrong kind.
        UsageError: an override is not ``key=value``.
    """
    starts = [command for command in read_commands(with_sources(text, path.parent, brought)) if _is_start(command)]
    start = starts[0]
    said: dict[str, Any] = {o.name: o.words[0] if o.words else True for o in options(start.text)}
    said |= overriding(overrides, _name)
    settings, unsettled = settled_apart(said, path)
    if other := next((key for key in _NOT_MODELLED if settings.flag(key)), None):
        reason = f"{other}: {_NOT_MODELLED[other]} is not modelled"
        raise ConfigError(reason, where=f"{path}:{start.line}", hint="give a run that trains all parameters on tokens")
    if zero := next((key for key in _SHARDED_BY_DEEPSPEED if key in settings), None):
        reason = f"{zero} is an argument of moe-recipes, which DeepSpeed shards: it is not read"
        hint = "give the DeepSpeed JSON that it takes as --config, with model=NAME, --batch and --sequence"
        raise ConfigError(reason, where=f"{path}:{start.line}", hint=hint)
    launched = _PROCESSES.search(start.text) if any(name in start.text for name in _MPI) else None
    processes = digits(launched[1]) if launched else processes_of(start)
    kept = settings.text("param_dtype") or (
        "bf16" if settings.flag("bf16") else "fp16" if settings.flag("fp16") else None
    )
    workload = Workload(
        sequence_length=settings.count("seq_length"),
        precision=kept or "fp32",
        weight_precision="bf16" if kept == "bf16" else None,
        optimizer="adamw" if settings.text("optimizer", "adam") == "adam" else settings.text("optimizer"),
        attention="flash",
    )
    model = str(said["base_model"]) if "base_model" in said else None
    known = with_nodes_of(start, with_devices(processes, experiment))
    read = read_program(settings, spec("llm-recipes"), path, known, model, workload, unsettled)
    return with_note_on_others(read, path, len(starts), start.line)


def _is_start(command: Command) -> bool:
    if command.assigns or not command.certain or "--base-model" not in command.text:
        return False
    return len(_SIGNS & {option.name for option in options(command.text)}) >= 3


def _name(key: str) -> str:
    return key.removeprefix("--").replace("-", "_")
