"""Scripts that start a recipe of NeMo 2 by its command: ``nemo llm pretrain --factory "llama3_8b(num_nodes=2)"
trainer.strategy.tensor_model_parallel_size=2``."""

import ast
import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from asap.core.errors import ConfigError
from asap.core.text import plain
from asap.experiments.experiment import Experiment
from asap.experiments.files.named_file import Brought
from asap.experiments.files.python_literals import CLASS, UNKNOWN, value_of
from asap.experiments.megatron.nemo.recipe_reader import read_recipe
from asap.experiments.several_runs import with_note_on_others
from asap.experiments.shell import Command, has_substitution, options, read_commands, with_sources, words

_COMMAND = re.compile(r"(?:^|[\s/])nemo(?:run)?\s+llm\s+(?P<task>pretrain|finetune)\s")
_VARIABLE = re.compile(r"\$\{?\w+\}?", re.ASCII)
_ASSIGNED = re.compile(r"([A-Za-z_][\w.]*)=(.*)", re.ASCII | re.DOTALL)
_FACTORY = "factory"


def is_recipe_script(text: str) -> bool:
    """Whether a script starts a recipe of NeMo 2."""
    return "llm" in text and any(map(_starts, read_commands(text)))


def read_recipe_script(
    text: str, path: Path, overrides: Iterable[str], experiment: Experiment, brought: Brought | None = None
) -> Experiment:
    """``experiment`` with the recipe that a script starts, and the settings of its command.

    Raises:
        ConfigError: it names no recipe, or one that trains adapters.
        UsageError: an override is not ``key=value``.
    """
    starts = [command for command in read_commands(with_sources(text, path.parent, brought)) if _starts(command)]
    task = _COMMAND.search(starts[0].text) if starts else None
    if task is None:
        raise ConfigError("starts nothing that is read", where=str(path))
    said = _said(starts[0], task["task"], path)
    read = read_recipe(said, path, overrides, experiment)
    return with_note_on_others(read, path, len(starts), starts[0].line)


def _starts(command: Command) -> bool:
    return not command.assigns and command.certain and _COMMAND.search(f"{command.text} ") is not None


def _said(start: Command, task: str, path: Path) -> dict[str, Any]:
    """The recipe with the arguments of its factory, and settings below their sections."""
    factory = next((" ".join(option.words) for option in options(start.text) if option.name == _FACTORY), None)
    every = words(start.text)
    written = next((word for word in every if factory and word.startswith(factory.partition("(")[0])), factory)
    said = _factory(written or "", path)
    said[CLASS] = f"{said[CLASS]}.{task}"
    for word in every:
        if found := _ASSIGNED.fullmatch(word):
            *sections, name = found[1].split(".")
            node = said
            for section in sections:
                inner = node.setdefault(section, {})
                node = inner if isinstance(inner, dict) else {}
            node[name] = _value(found[2])
    return said


def _factory(text: str, path: Path) -> dict[str, Any]:
    called = text if "(" in text else f"{text}()"
    try:
        made = value_of(ast.parse(_VARIABLE.sub("_", called), mode="eval").body, {})
    except SyntaxError:
        made = None
    if not isinstance(made, Mapping):
        raise ConfigError(f"starts NeMo with the factory {plain(text, 60) or 'of nothing'}", where=str(path))
    return dict(made)


def _value(text: str) -> Any:
    if has_substitution(text):
        return UNKNOWN
    try:
        return ast.literal_eval(text)
    except (ValueError, SyntaxError):
        return text
