"""Scripts that start DeepSpeed: ``deepspeed --num_gpus 8 train.py --deepspeed ds_config.json …``.

The configuration is the file that the command names, beside the script or written by it; what it leaves to the
launcher (``auto``) is what Hugging Face's arguments say (``TrainingArguments``,
huggingface.co/docs/transformers/main_classes/deepspeed).
"""

import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from asap.core.errors import ConfigError
from asap.core.text import plain
from asap.experiments.deepspeed.training_arguments import defaults_under, note_on, read_with_arguments, settled
from asap.experiments.experiment import Experiment
from asap.experiments.files.documents import find_named, missing
from asap.experiments.named_model import NO_MODEL
from asap.experiments.processes import with_processes_of
from asap.experiments.shell import Command, Start, has_substitution, options, read_commands
from asap.experiments.training_program import check_arguments, check_program
from asap.stacks.deepspeed.settings import SEQUENCE
from asap.stacks.stack_settings import StackSettings, dotted

_LAUNCHER = re.compile(r"(?:^|[\s/])deepspeed\s|\s--deepspeed(?:_config)?[\s=]")
_OPTION = re.compile(r"\s--deepspeed(?:_config)?[\s=]")
_PROGRAM = re.compile(r"\s(?:-m|--module)\s+(?!torch\.|deepspeed\.)([\w.-]+)|([\w./-]{1,400}\.py\b)")
_CONFIG = ("deepspeed_config", "deepspeed")
_JSON = (".json", ".conf")
_CONFIG_OF_PROGRAM = re.compile(r"(?:deepspeed|ds)(?:_?(?:config|cfg|conf|file|json|path))+")
"""What programs call the argument that names it: ``--ds_config``, ``--deepspeed_cfg``, ``--ds_config_path``."""


def starts_under_condition(text: str) -> bool:
    """Whether a script only starts DeepSpeed where a condition holds that it does not decide."""
    return any(starts(command) and not command.certain for command in read_commands(text))


def starts(command: Command) -> bool:
    """Whether a command starts DeepSpeed."""
    text = f"{command.text} "
    return _LAUNCHER.search(text) is not None and bool(".py" in text or (_OPTION.search(text) and _program(text)))


def read_deepspeed_script(start: Start, overrides: Iterable[str], experiment: Experiment) -> Experiment:
    """``experiment`` with what a script starts.

    Raises:
        ConfigError: the configuration is not beside the script, malformed, or none.
        UsageError: an override is not ``key=value``.
    """
    text, path = start.command.text, start.path
    program = _program(text)
    check_program(program, path, experiment.model is not None)
    said = {option.name: option.words[0] if option.words else True for option in options(text)}
    said |= start.undecided
    check_arguments({key: value for key, value in said.items() if key != SEQUENCE}, path)
    defaults = defaults_under(said, program)
    arguments = StackSettings(settled({**defaults, **said}), str(path))
    experiment = with_processes_of(start, experiment)
    found = read_with_arguments(_configuration(said, start), arguments, path, overrides, experiment, _unsaid(said))
    return found.model_copy(update={"notes": (*found.notes, *note_on(defaults))})


def _program(command: str) -> str:
    """The file, or module of Python, that a command starts; empty where it says none."""
    found = _PROGRAM.search(command)
    return "" if found is None else found[1] or found[2]


def _unsaid(said: Mapping[str, Any]) -> frozenset[str]:
    return frozenset(key for key, value in said.items() if has_substitution(str(value)))


def _configuration(arguments: Mapping[str, Any], start: Start) -> dict[str, Any]:
    """The settings of the file that the command names, by dotted key."""
    name, path = _named(arguments), start.path
    variable = next((said for key in _CONFIG if has_substitution(said := str(arguments.get(key, "")))), None)
    if name is None and variable:
        raise missing("starts DeepSpeed with", variable, path, "give the DeepSpeed JSON as --config")
    if name is None:
        own = ", which its program makes of --zero_stage and other arguments" if "zero_stage" in arguments else ""
        reason = f"starts DeepSpeed without naming its configuration{own}"
        raise ConfigError(reason, where=str(path), hint=f"give the DeepSpeed JSON as --config; {NO_MODEL}")
    start.check_made(name)
    found = find_named(name, path, start.files)
    if found is None:
        hint = f"lay it beside the script, or give {plain(Path(name).name, 60)} as --config, with --hardware"
        raise missing("starts DeepSpeed with", name, path, hint)
    return dotted(found.document().values)


def _named(arguments: Mapping[str, Any]) -> str | None:
    keys = (*_CONFIG, *(key for key in arguments if _CONFIG_OF_PROGRAM.fullmatch(key)))
    return next((str(arguments[key]) for key in keys if str(arguments.get(key, "")).endswith(_JSON)), None)
