"""Scripts that start a recipe of Megatron-Bridge by its name, and the settings that they lay over it.

Either ``scripts/training/run_recipe.py --recipe llama3_8b_pretrain_config model.tensor_model_parallel_size=2`` (or
``--model llama3_8b --mode pretrain``), whose recipe is known by its name; or ``scripts/performance``
(``argument_parser.py`` there), whose options are Megatron-LM's arguments. What neither says is the recipe's.
"""

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Any

from asap.core.errors import ConfigError
from asap.core.numbers import digits
from asap.core.text import plain
from asap.experiments.experiment import Experiment
from asap.experiments.files.named_file import Brought
from asap.experiments.files.yaml_text import parse_yaml
from asap.experiments.hardware import refer_to_hardware
from asap.experiments.megatron.reader import read_megatron
from asap.experiments.named_model import read_named_model
from asap.experiments.processes import processes_of, with_note_on_others, with_processes
from asap.experiments.shell import (
    Command,
    commands_within,
    has_substitution,
    options,
    read_commands,
    with_sources,
    words,
)
from asap.models import Architecture
from asap.stacks import megatron
from asap.stacks.megatron.architecture import arguments_of_shapes
from asap.stacks.megatron.sections import BRIDGE, VIRTUAL, VIRTUAL_SIZE, precision_arguments, section_arguments
from asap.stacks.stack_settings import StackSettings

_RECIPES = Path(megatron.__file__).with_name("recipes.jsonl")
_OF_PERFORMANCE = re.compile(r"\b(?:run_script|run_recipe|setup_experiment|custom_setup_experiment)\.py\b")
_OF_TRAINING = re.compile(r"\brun_recipe\.py\b")
_CONTINUED = re.compile(r"(?:[^\n]*+(?<=\\)\n)*[^\n]*")
_ASSIGNED = re.compile(r"\+{0,2}([a-z_]+(?:\.\w+)+)=(.*)", re.ASCII | re.DOTALL)
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
_SHORT = {
    "-gb": "global_batch_size", "-mb": "micro_batch_size", "-sl": "seq_length", "-tp": "tensor_model_parallel_size",
    "-pp": "pipeline_model_parallel_size", "-cp": "context_parallel_size", "-ep": "expert_model_parallel_size",
    "-vp": VIRTUAL_SIZE, "-etp": "expert_tensor_parallel_size",
}  # fmt: skip
_RENAMED = {"num_gpus": "world_size", VIRTUAL_SIZE: VIRTUAL}
_SHARDED, _SHARDS_STATE = "use_megatron_fsdp", "use_distributed_optimizer"
_DECIDED = (
    "tensor_model_parallel_size", "pipeline_model_parallel_size", "context_parallel_size", _SHARDED,
    "recompute_granularity", "optimizer",
)  # fmt: skip
_OPEN = "whether replicas share the optimizer's state is the recipe's: add use_distributed_optimizer=true"


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


def model_of(recipe: str, size: str | None = None) -> str:
    """``llama31_405b_pretrain_config`` → ``llama3.1_405b``; earlier versions have the size as an option."""
    name = _LENGTH.sub("", _TASK.sub("", recipe))
    name = _POINT.sub(r"\1.\2", _VERSION.sub(r"\1.\2_", f"{name}_{size}" if size else name))
    return _MILLIONS.sub(lambda found: f"{int(found[1]) / 1000:g}b", name)


def _check_trains_all(task: str | None, recipe: str, where: str) -> None:
    if task in _ADAPTERS:
        reason = f"{plain(recipe, 60)} trains adapters ({task}): training a part of the parameters is not modelled"
        raise ConfigError(reason, where=where, hint="give a run that trains all of them")


def _with_model(experiment: Experiment, name: str) -> Experiment:
    if experiment.model is not None:
        return experiment
    model, notes = read_named_model(name)
    return experiment.model_copy(update={"model": model, "notes": (*experiment.notes, *notes)})


@dataclass(frozen=True)
class Start:
    """A start by ``scripts/performance``: its recipe, and the options by name, with their lines."""

    recipe: str
    options: dict[str, str]
    lines: dict[str, int]


def find_start(text: str) -> Start | None:
    """The first such start in a script, also within a here-document; ``None`` if there is none."""
    for program in _OF_PERFORMANCE.finditer(text):
        command = _CONTINUED.match(text, program.end())
        found = list(options(command[0], text.count("\n", 0, program.end()) + 1)) if command else []
        said = {option.name: option.words[0] if option.words else "true" for option in found}
        recipe = said.get("model_recipe_name", said.get("model_name"))
        if recipe and "$" not in recipe:
            return Start(recipe, said, {_RENAMED.get(option.name, option.name): option.line for option in found})
    return None


def read_bridge_script(start: Start, path: Path, overrides: Iterable[str], experiment: Experiment) -> Experiment:
    """``experiment`` with such a start; raises like :func:`read_megatron`, and ConfigError where it trains adapters."""
    named = _TASK.search(start.recipe)
    _check_trains_all(named[1] if named else start.options.get("task"), start.recipe, str(path))
    known = {
        _RENAMED.get(key, key): value
        for key, value in start.options.items()
        if value not in ("None", "") and not has_substitution(value)
    }
    if _SHARDED in known:
        known[_SHARDED] = {"0": "false", "1": "true"}.get(known[_SHARDED], known[_SHARDED])
    kind = known.get("compute_dtype", "").partition("_")[0]
    precision = precision_arguments(kind) | ({"bf16": True} if kind == "fp8" else {})
    settings = StackSettings({**known, **precision}, str(path), start.lines)
    experiment = _with_model(_with_chip(settings, experiment), model_of(start.recipe, start.options.get("model_size")))
    read = read_megatron(settings, overrides, experiment, BRIDGE, left_to_recipe(settings, experiment.model))
    open_ = read.workload.zero_stage is None and _SHARDS_STATE not in read.hyperparameters
    return read.model_copy(update={"notes": (*read.notes, *([f"{_OPEN} where they do"] if open_ else []))})


def _with_chip(settings: StackSettings, experiment: Experiment) -> Experiment:
    """The experiment with the GPUs that the options name, so many as are known besides, where none are said."""
    given = experiment.hardware
    chip, count = settings.text("gpu"), given.devices or digits(str(settings.get("world_size")))
    if given.chip is not None or not chip or not count:
        return experiment
    hardware, _ = refer_to_hardware(f"{chip}-{count}")
    sources = experiment.provenance | {"hardware": settings.source("gpu")}
    return experiment.model_copy(update={"hardware": hardware, "provenance": sources})


def is_recipe_script(text: str) -> bool:
    """Whether a script starts a recipe by ``run_recipe.py``."""
    return _OF_TRAINING.search(text) is not None and any(_recipe_of(start) for _, start in _starts(text))


def read_recipe_script(
    text: str, path: Path, overrides: Iterable[str], experiment: Experiment, brought: Brought | None = None
) -> Experiment:
    """``experiment`` with the recipe that a script starts, and the settings of its command.

    Raises:
        ConfigError: it trains adapters, or other layers than a decoder's.
        UsageError: an override is not ``key=value``.
    """
    starts = [pair for pair in _starts(with_sources(text, path.parent, brought)) if _recipe_of(pair[1])]
    if not starts:
        raise ConfigError("starts nothing that is read", where=str(path))
    outer, start = starts[0]
    recipe = _recipe_of(start) or ""
    said = _settings(start)
    _check_trains_all(_task_of(start, recipe), recipe, str(path))
    check_is_decoder(recipe, str(path))
    experiment = with_processes(start if processes_of(start) else outer, experiment)
    base = _recipes().get(recipe, {})
    notes = [f"what {plain(recipe, 80)} does not change is that of {BRIDGE} {base['releases']}"] if base else []
    every = {**base.get("settings", {}), **_changes(said)}
    open_ = {key for key, value in every.items() if has_substitution(str(value))}
    settings = StackSettings({key: value for key, value in every.items() if key not in open_}, str(path))
    shapes = sorted({*said.get("model", {})} & _shapes())
    experiment = _with_model(experiment, model_of(recipe))
    if shapes:
        experiment = experiment.model_copy(update={"model": Architecture()})
        notes.append(f"{', '.join(shapes)} of the recipe's model are changed: say the whole model")
    open_ |= {*left_to_recipe(settings, experiment.model), "global_batch_size"} - every.keys()
    if not {_SHARDS_STATE, _SHARDED} & every.keys():
        notes.append(f"{_OPEN} or false")
    experiment = experiment.model_copy(update={"notes": (*experiment.notes, *notes)})
    read = read_megatron(settings, overrides, experiment, BRIDGE, frozenset(open_))
    return with_note_on_others(read, path, len(starts), start.line)


@cache
def _recipes() -> Mapping[str, Mapping[str, Any]]:
    """What recipes set, by their name."""
    entries = [json.loads(line) for line in _RECIPES.read_text(encoding="utf-8").splitlines()]
    return {entry["recipe"]: entry for entry in entries if entry["settings"]}


def _shapes() -> frozenset[str]:
    named = {*arguments_of_shapes().values()} - {"mtp_num_layers"}
    return frozenset({*named, "num_moe_experts", "vocab_size", "position_embedding_type"})


def _changes(said: Mapping[str, Any]) -> dict[str, Any]:
    """Megatron-LM's arguments that a command lays over a recipe."""
    found = section_arguments(said)
    precision = precision_arguments(said.get("mixed_precision"))
    return {key: value for key, value in (found | precision).items() if key not in _shapes()}


def _starts(text: str) -> Iterator[tuple[Command, Command]]:
    """Commands that start a recipe, each with that of the quotes it may stand in."""
    for command in read_commands(text):
        if command.certain and not command.assigns and _OF_TRAINING.search(command.text):
            inner = (part for part in commands_within(command) if _OF_TRAINING.search(part.text))
            yield command, next(inner, command)


def _said(start: Command) -> dict[str, str]:
    return {option.name: option.words[0] for option in options(start.text) if option.words}


def _recipe_of(start: Command) -> str | None:
    """The recipe that a command names, or that of its model and mode."""
    said = _said(start)
    recipe, model = said.get("recipe"), said.get("model")
    if recipe is None and model is not None:
        recipe = f"{model}_{said.get('mode', 'pretrain')}_config"
    return None if recipe is None or has_substitution(recipe) else recipe


def _task_of(start: Command, recipe: str) -> str | None:
    said, named = _said(start), _TASK.search(recipe)
    return said.get("peft_scheme") or said.get("mode") or (named[1] if named else None)


def _settings(start: Command) -> dict[str, Any]:
    """The settings of a command, by section."""
    found: dict[str, Any] = {}
    every, sections = (
        words(start.text),
        {"global_batch_size": "train", "micro_batch_size": "train", "seq_length": "dataset"},
    )
    given = _said(start) | {_SHORT[word]: after for word, after in pairwise(every) if word in _SHORT}
    places = {f"{sections.get(name, 'model')}.{name}": given[name] for name in _SHORT.values() if name in given}
    places |= {said[1]: said[2] for word in every if (said := _ASSIGNED.fullmatch(word))}
    for place, text in places.items():
        section, _, name = place.partition(".")
        found.setdefault(section, {})[name] = text if has_substitution(text) else _value(text)
    return found


def _value(text: str) -> Any:
    try:
        return parse_yaml(text, "command")[0]
    except ConfigError:
        return text
