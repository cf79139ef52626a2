"""Scripts that start a recipe of Megatron-Bridge by ``scripts/performance`` (``argument_parser.py`` there).

The recipe has the model and whatever the command does not say; the degrees that it does say are Megatron-LM's.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from asap.core.errors import ConfigError
from asap.core.numbers import digits
from asap.experiments.experiment import Experiment
from asap.experiments.hardware import refer_to_hardware
from asap.experiments.megatron.reader import read_megatron
from asap.experiments.megatron.yaml_dialects import BRIDGE
from asap.experiments.named_model import read_named_model
from asap.experiments.shell import options
from asap.models import Architecture
from asap.stacks.stack_settings import StackSettings

_PROGRAM = re.compile(r"\b(?:run_script|run_recipe|setup_experiment|custom_setup_experiment)\.py\b")
_CONTINUED = re.compile(r"(?:[^\n]*+(?<=\\)\n)*[^\n]*")
_RECIPE, _SIZE = ("model_recipe_name", "model_name"), "model_size"
_VERSION = re.compile(r"^([a-z]+\d)(\d)_")
_RENAMED = {"num_gpus": "world_size", "virtual_pipeline_model_parallel_size": "num_virtual_stages_per_pipeline_rank"}
_PRECISIONS = {"bf16": {"bf16": True}, "fp8": {"bf16": True, "fp8_format": "hybrid"}, "nvfp4": {"fp4_format": "e2m1"}}
_SHARDED, _FLAGS = "use_megatron_fsdp", {"0": "false", "1": "true"}
_DECIDED = ("tensor_model_parallel_size", "pipeline_model_parallel_size", "context_parallel_size", _SHARDED)
_RECOMPUTATION = "recompute_granularity"
_LENGTH = re.compile(r"_\d+k$|_low_precision$")
"""In the name of a recipe: the sequence length, or that of its precision."""
_POINT = re.compile(r"(?<=[_-])(\d+)p(\d+)(?=b\b|b_)")
_MILLIONS = re.compile(r"(?<=[_-])(\d{2,4})m\b")
_TASK = re.compile(r"_(pretrain|sft|lora|dora|peft|finetune)(?:_.*)?$")
_ADAPTERS = ("lora", "dora", "peft")


@dataclass(frozen=True)
class Start:
    """A start of a recipe: its model, its task if it is said, and the options by name, with their lines."""

    model: str
    task: str | None
    options: dict[str, str]
    lines: dict[str, int]


def find_start(text: str) -> Start | None:
    """The first start of a recipe in a script, also within a here-document; ``None`` if there is none."""
    for program in _PROGRAM.finditer(text):
        command = _CONTINUED.match(text, program.end())
        assert command is not None
        found = list(options(command[0], text.count("\n", 0, program.end()) + 1))
        said = {option.name: option.words[0] if option.words else "true" for option in found}
        recipe = next((said[key] for key in _RECIPE if key in said), None)
        if recipe and "$" not in recipe:
            lines = {_RENAMED.get(option.name, option.name): option.line for option in found}
            named = _TASK.search(recipe)
            task = named[1] if named else said.get("task")
            return Start(model_of(recipe, said.get(_SIZE)), task, said, lines)
    return None


def recipe_arguments(start: Start, path: Path) -> StackSettings:
    """The options as Megatron-LM's arguments; those that a variable decides are left out.

    Raises:
        ConfigError: the recipe trains adapters.
    """
    if start.task in _ADAPTERS:
        reason = f"starts {start.task}: training a part of the parameters is not modelled"
        raise ConfigError(reason, where=str(path), hint="give a run that trains all of them")
    known = {
        _RENAMED.get(key, key): value
        for key, value in start.options.items()
        if value not in ("None", "") and not any(mark in value for mark in "$`")
    }
    if (sharded := known.get(_SHARDED)) in _FLAGS:
        known[_SHARDED] = _FLAGS[sharded]
    precision = known.get("compute_dtype", "").partition("_")[0]
    return StackSettings({**known, **_PRECISIONS.get(precision, {})}, str(path), start.lines)


def model_of(recipe: str, size: str | None) -> str:
    """``llama31_405b_pretrain_config`` → ``llama3.1_405b``; earlier versions have the size as an option."""
    name = _LENGTH.sub("", _TASK.sub("", recipe))
    return in_billions(_VERSION.sub(r"\1.\2_", f"{name}_{size}" if size else name))


def in_billions(name: str) -> str:
    """A name with the size of its model as others write it: ``1p5b`` → ``1.5b``, ``600m`` → ``0.6b``."""
    name = _POINT.sub(r"\1.\2", name)
    return _MILLIONS.sub(lambda found: f"{int(found[1]) / 1000:g}b", name)


def hardware_of(settings: StackSettings, devices: int | None) -> str | None:
    """``gb200-64``: the GPUs that the options name, so many as are known besides."""
    chip, count = settings.text("gpu"), devices or digits(str(settings.get("world_size")))
    return f"{chip}-{count}" if chip and count else None


def left_to_recipe(settings: StackSettings, model: Architecture | None) -> frozenset[str]:
    """Arguments that decide the plan, the precision and the optimizer, and that the recipe decides."""
    wanted = [*_DECIDED, _RECOMPUTATION, "optimizer"]
    if str(settings.get("pipeline_model_parallel_size", 1)) != "1":
        wanted.append("num_virtual_stages_per_pipeline_rank")
    if str(settings.get("tensor_model_parallel_size")) != "1":
        wanted.append("sequence_parallel")
    if model is not None and (model.is_moe or model.layers is None):
        wanted.append("expert_model_parallel_size")
    if "bf16" not in settings and "fp4_format" not in settings:
        wanted.append("bf16")
    return frozenset(key for key in wanted if key not in settings)


_SHARDS_STATE = "use_distributed_optimizer"


def read_bridge_script(start: Start, path: Path, overrides: Iterable[str], experiment: Experiment) -> Experiment:
    """``experiment`` with the start of a recipe of Megatron-Bridge; raises like :func:`read_megatron`.

    What it does not say is the recipe's: the degrees and sharding are unknown then, and so is recomputation.
    """
    settings = recipe_arguments(start, path)
    experiment = _with_recipe(start, settings, experiment)
    read = read_megatron(settings, overrides, experiment, BRIDGE, left_to_recipe(settings, experiment.model))
    if read.workload.zero_stage is not None or _SHARDS_STATE in read.hyperparameters:
        return read
    note = f"whether replicas share the optimizer's state is the recipe's: add {_SHARDS_STATE}=true where they do"
    return read.model_copy(update={"notes": (*read.notes, note)})


def _with_recipe(start: Start, settings: StackSettings, experiment: Experiment) -> Experiment:
    """The experiment with the GPUs and the model of a recipe, where they are not said."""
    given = experiment.hardware
    if given.chip is None and (said := hardware_of(settings, given.devices)) is not None:
        hardware, _ = refer_to_hardware(said)
        sources = experiment.provenance | {"hardware": settings.source("gpu")}
        experiment = experiment.model_copy(update={"hardware": hardware, "provenance": sources})
    if experiment.model is None:
        model, notes = read_named_model(start.model)
        experiment = experiment.model_copy(update={"model": model, "notes": (*experiment.notes, *notes)})
    return experiment
