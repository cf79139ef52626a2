"""Scripts that start a recipe of Megatron-Bridge by ``scripts/performance``, whose options are Megatron-LM's arguments
(``argument_parser.py`` there). What they do not say is the recipe's."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from asap.core.errors import ConfigError
from asap.core.numbers import digits
from asap.core.text import plain
from asap.experiments.experiment import Experiment, refer_to_hardware
from asap.experiments.huggingface_model import read_named_model
from asap.experiments.megatron.reader import read_megatron
from asap.experiments.remarks import no_batch
from asap.experiments.shell import has_substitution, options
from asap.models import Architecture
from asap.stacks.megatron.sections import BRIDGE, VIRTUAL, VIRTUAL_SIZE, precision_arguments
from asap.stacks.stack_settings import StackSettings

_OF_PERFORMANCE = re.compile(r"\b(?:run_script|run_recipe|setup_experiment|custom_setup_experiment)\.py\b")
_CONTINUED = re.compile(r"(?:[^\n]*+(?<=\\)\n)*[^\n]*")
_VERSION = re.compile(r"^([a-z]+\d)(\d)_")
_LENGTH = re.compile(r"_\d+k$|_low_precision$")
"""In the name of a recipe: the sequence length, or that of its precision."""
_POINT, _MILLIONS = re.compile(r"(?<=[_-])(\d+)p(\d+)(?=b\b|b_)"), re.compile(r"(?<=[_-])(\d{2,4})m\b")
_TASK = re.compile(r"_(pretrain|sft|lora|dora|peft|finetune)(?:_.*)?$")
_ADAPTERS = ("lora", "dora", "peft", "finetune")
_OTHER = re.compile(
    r"mamba|(?<![a-z])ssm|nemotron_?h|nemotron_?3|nano_?v2|hybrid|zebra|t5|vlm?(?![a-z])|omni|llava|flux|wan_|diffusion|audio"
    r"|multimodal|bert|hyena|esm\d|(?:^|[_.])clip_",
    re.I,
)
"""In names of what is no decoder of text with attention in each layer."""
_RENAMED = {"num_gpus": "world_size", VIRTUAL_SIZE: VIRTUAL}
_SHARDED, _SHARDS_STATE = "use_megatron_fsdp", "use_distributed_optimizer"
_DECIDED = (
    "tensor_model_parallel_size", "pipeline_model_parallel_size", "context_parallel_size", _SHARDED,
    "recompute_granularity", "optimizer",
)  # fmt: skip
_OPEN = f"whether replicas share the optimizer's state is the recipe's: add {_SHARDS_STATE}=true where they do"


@dataclass(frozen=True)
class Recipe:
    """A start of a recipe: its name and task, the size of its model where that is an option, what is laid over it under
    Megatron-LM's names, and the lines of options."""

    recipe: str
    task: str | None
    size: str | None
    said: dict[str, Any]
    lines: dict[str, int] = field(default_factory=dict)


def check_is_decoder(recipe: str, where: str) -> None:
    """Raise ConfigError where the name of a recipe says other layers than those of a decoder."""
    if _OTHER.search(recipe):
        reason = f"trains {plain(recipe, 60)}; only decoders of attention and MLPs are read"
        raise ConfigError(reason, where=where)


def left_to_recipe(settings: Mapping[str, object], model: Architecture | None) -> frozenset[str]:
    """Arguments that decide the plan, the precision and the optimizer, and that the recipe decides."""
    wanted = [*_DECIDED]
    if str(settings.get("pipeline_model_parallel_size", 1)) != "1":
        wanted.append(VIRTUAL)
    if str(settings.get("tensor_model_parallel_size")) != "1":
        wanted.append("sequence_parallel")
    if model is not None and (model.is_moe or model.layers is None):
        wanted.append("expert_model_parallel_size")
    if "fp4_format" not in settings:
        wanted.append("bf16")
    return frozenset(key for key in wanted if key not in settings)


def read_recipe(start: Recipe, path: Path, overrides: Iterable[str], experiment: Experiment) -> Experiment:
    """``experiment`` with a start of a recipe.

    Raises:
        ConfigError: it trains adapters or other layers than a decoder's, or what :func:`read_megatron` raises.
        UsageError: an override is not ``key=value``.
    """
    if start.task in _ADAPTERS:
        reason = f"{plain(start.recipe, 60)} trains adapters ({start.task}): training a part of the parameters"
        raise ConfigError(f"{reason} is not modelled", where=str(path), hint="give a run that trains all of them")
    check_is_decoder(start.recipe, str(path))
    every = start.said
    open_ = {key for key, value in every.items() if has_substitution(str(value))}
    settings = StackSettings({key: value for key, value in every.items() if key not in open_}, str(path), start.lines)
    experiment = _with_chip(settings, experiment)
    if experiment.model is None:
        model, more = read_named_model(model_of(start.recipe, start.size))
        experiment = experiment.knowing(*more, model=model)
    open_ |= {*left_to_recipe(settings, experiment.model), "global_batch_size"} - every.keys()
    read = read_megatron(settings, overrides, experiment, BRIDGE, frozenset(open_))
    said = read.workload.zero_stage is not None or _SHARDS_STATE in read.hyperparameters or _SHARDS_STATE in every
    left = [*([] if said else [_OPEN]), *([] if read.workload.global_batch else [no_batch(["global_batch_size"])])]
    return read.knowing(*left)


def model_of(recipe: str, size: str | None) -> str:
    """``llama31_405b_pretrain_config`` → ``llama3.1_405b``; earlier versions have the size as an option."""
    name = _LENGTH.sub("", _TASK.sub("", recipe))
    name = _POINT.sub(r"\1.\2", _VERSION.sub(r"\1.\2_", f"{name}_{size}" if size else name))
    return _MILLIONS.sub(lambda found: f"{int(found[1]) / 1000:g}b", name)


def _with_chip(settings: StackSettings, experiment: Experiment) -> Experiment:
    """The experiment with the GPUs that the options name, so many as are known besides, where none are said."""
    given = experiment.hardware
    chip, count = settings.text("gpu"), given.devices or digits(str(settings.get("world_size")))
    if given.chip is not None or not chip or not count:
        return experiment
    hardware, _ = refer_to_hardware(f"{chip}-{count}")
    sources = experiment.provenance | {"hardware": settings.source("gpu")}
    return experiment.model_copy(update={"hardware": hardware, "provenance": sources})


def find_recipe(text: str) -> Recipe | None:
    """The first start by ``scripts/performance``, also within a here-document; ``None`` if there is none."""
    for program in _OF_PERFORMANCE.finditer(text):
        command = _CONTINUED.match(text, program.end())
        found = list(options(command[0], text.count("\n", 0, program.end()) + 1)) if command else []
        given = {option.name: option.words[0] if option.words else "true" for option in found}
        recipe = given.get("model_recipe_name", given.get("model_name"))
        if not recipe or "$" in recipe:
            continue
        known = {key: value for key, value in given.items() if value not in ("None", "")}
        known = {key: value for key, value in known.items() if not has_substitution(value)}
        said = {_RENAMED.get(key, key): value for key, value in known.items()}
        if _SHARDED in said:
            said[_SHARDED] = {"0": "false", "1": "true"}.get(said[_SHARDED], said[_SHARDED])
        kind = known.get("compute_dtype", "").partition("_")[0]
        precision = precision_arguments(kind) | ({"bf16": True} if kind == "fp8" else {})
        lines = {_RENAMED.get(option.name, option.name): option.line for option in found}
        task = _task_of(recipe) or given.get("task")
        return Recipe(recipe, task, given.get("model_size"), {**said, **precision}, lines=lines)
    return None


def _task_of(recipe: str) -> str | None:
    return named[1] if (named := _TASK.search(recipe)) else None
