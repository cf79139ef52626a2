"""Scripts that start a recipe of Megatron-Bridge by its name: ``torchrun … scripts/training/run_recipe.py --recipe
llama3_8b_pretrain_config model.tensor_model_parallel_size=2 …``, or ``--model llama3_8b --mode pretrain``."""

import re
from collections.abc import Iterable, Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

from asap.core.errors import ConfigError
from asap.experiments.experiment import Experiment
from asap.experiments.files.named_file import Brought
from asap.experiments.files.python_literals import CLASS, UNKNOWN
from asap.experiments.files.yaml_text import parse_yaml
from asap.experiments.megatron.bridge.recipe import read_recipe
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

_PROGRAM = re.compile(r"\brun_recipe\.py\b")
_ASSIGNED = re.compile(r"\+{0,2}([a-z_]+(?:\.\w+)+)=(.*)", re.ASCII | re.DOTALL)
_RECIPE, _MODEL, _MODE, _SCHEME = "recipe", "model", "mode", "peft_scheme"
_ADAPTERS = ("lora", "dora")
_SHORT = {
    "-gb": "global_batch_size", "-mb": "micro_batch_size", "-sl": "seq_length", "-tp": "tensor_model_parallel_size",
    "-pp": "pipeline_model_parallel_size", "-cp": "context_parallel_size", "-ep": "expert_model_parallel_size",
    "-vp": "virtual_pipeline_model_parallel_size", "-etp": "expert_tensor_parallel_size",
}  # fmt: skip
_PLACES = {"global_batch_size": "train", "micro_batch_size": "train", "seq_length": "dataset"}
"""Sections of options that are none of the model."""


def is_recipe_script(text: str) -> bool:
    """Whether a script starts a recipe by its name."""
    return _PROGRAM.search(text) is not None and any(_recipe_of(start) for _, start in _starts(text))


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
    experiment = with_processes(start if processes_of(start) else outer, experiment)
    read = read_recipe(_said(start), path, overrides, experiment)
    return with_note_on_others(read, path, len(starts), start.line)


def _starts(text: str) -> Iterator[tuple[Command, Command]]:
    """Commands that start a recipe, each with that of the quotes it may stand in."""
    for command in read_commands(text):
        if command.certain and not command.assigns and _PROGRAM.search(command.text):
            inner = (part for part in commands_within(command) if _PROGRAM.search(part.text))
            yield command, next(inner, command)


def _recipe_of(start: Command) -> str | None:
    """The recipe that a command names, or that of its model and mode."""
    said = {option.name: option.words[0] for option in options(start.text) if option.words}
    recipe, model = said.get(_RECIPE), said.get(_MODEL)
    if recipe is None and model is not None:
        recipe = f"{model}_{said.get(_MODE, 'pretrain')}_config"
    return None if recipe is None or has_substitution(recipe) else recipe


def _said(start: Command) -> dict[str, Any]:
    """The recipe with the settings of its command, by section."""
    found: dict[str, Any] = {CLASS: _recipe_of(start)}
    every = words(start.text)
    given = {option.name: option.words[0] for option in options(start.text) if option.words}
    given |= {_SHORT[word]: after for word, after in pairwise(every) if word in _SHORT}
    for name in _SHORT.values():
        if name in given:
            _set(found, f"{_PLACES.get(name, 'model')}.{name}", given[name])
    for word in every:
        if assigned := _ASSIGNED.fullmatch(word):
            _set(found, assigned[1], assigned[2])
    scheme = given.get(_SCHEME) or given.get(_MODE)
    return {**found, "peft": scheme} if scheme in _ADAPTERS else found


def _set(found: dict[str, Any], place: str, text: str) -> None:
    *sections, name = place.split(".")
    node = found
    for section in sections:
        inner = node.setdefault(section, {})
        node = inner if isinstance(inner, dict) else {}
    node[name] = UNKNOWN if has_substitution(text) else _value(text)


def _value(text: str) -> Any:
    try:
        return parse_yaml(text, "command")[0]
    except ConfigError:
        return text
