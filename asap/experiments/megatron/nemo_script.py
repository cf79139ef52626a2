"""Scripts that start NeMo: ``python megatron_gpt_pretraining.py --config-path=conf --config-name=gpt
trainer.num_nodes=4 model.micro_batch_size=2`` (Hydra's command line)."""

import re
from collections.abc import Iterable
from pathlib import Path, PurePosixPath

from asap.core.errors import ConfigError
from asap.core.text import plain
from asap.experiments.experiment import Experiment
from asap.experiments.megatron.arguments import is_argument
from asap.experiments.megatron.hydra import is_hydra_key
from asap.experiments.megatron.nemo import NEMO, argument_of, dialect
from asap.experiments.megatron.reader import read_nemo
from asap.experiments.named_file import Brought, below_variable, find_named
from asap.experiments.shell import Command, has_substitution, options, read_commands, with_sources, words
from asap.experiments.training_program import check_program

_PROGRAM = re.compile(r"[\w./-]*\bmegatron_\w+\.py\b")
_SECTIONS = ("trainer", "model", "exp_manager")
_ASSIGNED = re.compile(rf"\+{{0,2}}((?:{'|'.join(_SECTIONS)})\.[\w.]+)=(.*)", re.ASCII | re.DOTALL)
_NAME, _FOLDER = "config_name", "config_path"


def is_nemo_script(text: str) -> bool:
    """Whether a script starts NeMo with a configuration that it names."""
    return "--config-name" in text and any(_starts(command) for command in read_commands(text))


def read_nemo_script(
    text: str, path: Path, overrides: Iterable[str], experiment: Experiment, brought: Brought | None = None
) -> Experiment:
    """``experiment`` with the YAML that a script names, and the settings of its command.

    Raises:
        ConfigError: the YAML is not there, or describes no decoder.
        UsageError: an override is not ``key=value``.
    """
    start = next((c for c in read_commands(with_sources(text, path.parent, brought)) if _starts(c)), None)
    program = _PROGRAM.search(start.text) if start else None
    if start is None or program is None:
        raise ConfigError("starts nothing that is read", where=str(path))
    check_program(program[0], path)
    said = {option.name: option.words[0] for option in options(start.text) if option.words}
    name = said[_NAME] if said[_NAME].endswith((".yaml", ".yml")) else f"{said[_NAME]}.yaml"
    named = str(PurePosixPath(below_variable(said.get(_FOLDER, ""))) / name)
    found = None if has_substitution(named) else find_named(named, path, brought)
    if found is None:
        reason = f"starts NeMo with {plain(named, 80)}, which is not there"
        raise ConfigError(reason, where=str(path), hint="lay it beside the script")
    values = found.document().values
    if dialect(values) != NEMO:
        raise ConfigError("describes no language model of NeMo", where=str(found.path))
    given = [*overrides]
    settled = {override.partition("=")[0].lstrip("+~") for override in given}
    settings = {match[1]: word for word in words(start.text) if (match := _ASSIGNED.fullmatch(word))}
    settings = {key: word for key, word in settings.items() if key not in settled}
    unknown = sorted(key for key, word in settings.items() if has_substitution(word))
    taken = [f"{key}=null" if key in unknown else word for key, word in settings.items()]
    unsettled = frozenset(argument_of(key) for key in unknown)
    read = read_nemo(values, NEMO, found.path, [*taken, *given], experiment, unsettled)
    note = f"set by a variable whose value is not said: {plain(', '.join(unknown), 160)}"
    return read.model_copy(update={"notes": (*read.notes, *([note] if unknown else []))})


def is_setting(key: str) -> bool:
    """Whether an override is one of NeMo's settings, in Hydra's grammar."""
    return is_hydra_key(dict.fromkeys(_SECTIONS), key) or ("." not in key and is_argument(key))


def _starts(command: Command) -> bool:
    return not command.assigns and command.certain and "--config-name" in command.text and _is_nemo(command.text)


def _is_nemo(text: str) -> bool:
    return _PROGRAM.search(text) is not None
