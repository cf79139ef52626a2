"""Scripts that start NeMo: ``python megatron_gpt_pretraining.py --config-path=conf --config-name=gpt
trainer.num_nodes=4 model.micro_batch_size=2`` (Hydra's command line), also in quotes: ``srun bash -c "…"``.
"""

import re
from collections.abc import Iterable
from pathlib import Path, PurePosixPath

from asap.core.errors import ConfigError
from asap.core.text import plain
from asap.experiments.experiment import Experiment
from asap.experiments.files.hydra_defaults import is_hydra_key
from asap.experiments.files.named_file import Brought, below_variable, find_named, missing
from asap.experiments.megatron.arguments import is_argument
from asap.experiments.megatron.reader import read_nemo
from asap.experiments.megatron.yaml_dialects import NEMO, argument_of, dialect
from asap.experiments.shell import (
    Command,
    commands_within,
    has_substitution,
    options,
    read_commands,
    with_sources,
    words,
)
from asap.experiments.training_program import check_program

_PROGRAM = re.compile(r"[\w./-]{0,400}\b(?:megatron_\w{1,200}|train_gpt_sft)\.py\b")
_SECTIONS = ("trainer", "model", "exp_manager")
_ASSIGNED = re.compile(rf"\+{{0,2}}((?:{'|'.join(_SECTIONS)})\.[\w.]+)=(.*)", re.ASCII | re.DOTALL)
_NAME, _FOLDER = "config_name", "config_path"
_DEFAULTS = (
    ("train_gpt_sft", "gpt_sft"),
    ("finetuning", "megatron_gpt_finetuning_config"),
    ("sft", "megatron_gpt_sft"),
    ("pretraining", "megatron_gpt_config"),
)
"""What a program takes where its command names no configuration, by its name (``examples/nlp/language_modeling`` of
NeMo, ``examples/nlp/gpt`` of NeMo-Aligner)."""


def is_nemo_script(text: str) -> bool:
    """Whether a script starts NeMo with a configuration that it names, or with the one of its program."""
    return _is_nemo(text) and any(_start_of(command) for command in read_commands(text))


def read_nemo_script(
    text: str, path: Path, overrides: Iterable[str], experiment: Experiment, brought: Brought | None = None
) -> Experiment:
    """``experiment`` with the YAML that a script names, and the settings of its command.

    Raises:
        ConfigError: the YAML is not there, or describes no decoder.
        UsageError: an override is not ``key=value``.
    """
    commands = read_commands(with_sources(text, path.parent, brought))
    start = next(filter(None, map(_start_of, commands)), None)
    program = _PROGRAM.search(start.text) if start else None
    if start is None or program is None:
        raise ConfigError("starts nothing that is read", where=str(path))
    check_program(program[0], path)
    said = {option.name: option.words[0] for option in options(start.text) if option.words}
    name = said.get(_NAME) or _default_of(program[0]) or ""
    name = name if name.endswith((".yaml", ".yml")) else f"{name}.yaml"
    named = str(PurePosixPath(below_variable(said.get(_FOLDER, "conf"))) / name)
    found = None if has_substitution(named) else find_named(named, path, brought)
    if found is None:
        raise missing("starts NeMo with", named, path, "lay it beside the script")
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


def _start_of(command: Command) -> Command | None:
    """The command that starts NeMo: itself, or one that it has in quotes."""
    if command.assigns or not command.certain or not _is_nemo(command.text):
        return None
    return next((inner for inner in commands_within(command) if _starts(inner)), command if _starts(command) else None)


def _starts(command: Command) -> bool:
    found = None if command.assigns or not command.certain else _PROGRAM.search(command.text)
    return found is not None and ("--config-name" in command.text or _default_of(found[0]) is not None)


def _default_of(program: str) -> str | None:
    return next((name for word, name in _DEFAULTS if word in program), None)


def _is_nemo(text: str) -> bool:
    return _PROGRAM.search(text) is not None


_OF_LAUNCHER = re.compile(r"(?:^|[\s/])main\.py\s")
_STAGE = re.compile(r"\+{0,2}(training|fine_tuning|peft)=([\w./$-]+)", re.ASCII)
_STAGES = re.compile(r"stages=.*\b(training|fine_tuning|peft)\b.*", re.ASCII | re.DOTALL)
_SETTING = re.compile(r"\+{0,2}(\w+)\.((?:trainer|model|exp_manager)\.[\w.]+)=(.*)", re.ASCII | re.DOTALL)


def is_launcher_script(text: str) -> bool:
    """Whether a script starts the training of NeMo's launcher."""
    return _STAGE.search(text) is not None and any(_trained(command) for command in read_commands(text))


def read_launcher_script(
    text: str, path: Path, overrides: Iterable[str], experiment: Experiment, brought: Brought | None = None
) -> Experiment:
    """``experiment`` with the configuration that a script names, and the settings of its command.

    Raises:
        ConfigError: the configuration is not there, or describes no decoder.
        UsageError: an override is not ``key=value``.
    """
    commands = read_commands(with_sources(text, path.parent, brought))
    start = next((command for command in commands if _trained(command)), None)
    trained = _trained(start) if start else None
    if start is None or trained is None:
        raise ConfigError("starts nothing that is read", where=str(path))
    stage, name = trained
    named = f"conf/{stage}/{name}.yaml"
    places = () if has_substitution(name) else (named, f"launcher_scripts/{named}")
    found = next((file for place in places if (file := find_named(place, path, brought))), None)
    if found is None:
        settings = f"the settings behind {stage}.: {_example(start, stage)}"
        hint = f"give that file of NeMo's launcher as --config, with {settings}"
        raise ConfigError(f"starts NeMo with {plain(named, 80)}, which is not there", where=str(path), hint=hint)
    values = found.document().values
    if dialect(values) != NEMO:
        raise ConfigError("describes no language model of NeMo", where=str(found.path))
    given = [*overrides]
    settled = {override.partition("=")[0].lstrip("+~") for override in given}
    said = {key: value for key, value in _settings(start, stage).items() if key not in settled}
    unknown = sorted(key for key, value in said.items() if has_substitution(value))
    taken = [f"{key}={'null' if key in unknown else value}" for key, value in said.items()]
    return read_nemo(
        values, NEMO, found.path, [*taken, *given], experiment, frozenset(argument_of(key) for key in unknown)
    )


def _trained(command: Command) -> tuple[str, str] | None:
    """The stage that a command runs, and its configuration; ``None`` where it starts no launcher."""
    if command.assigns or not command.certain or not _OF_LAUNCHER.search(f" {command.text} "):
        return None
    said = words(command.text)
    stages = [found[1] for word in said if (found := _STAGES.fullmatch(word))]
    named = [(found[1], found[2]) for word in said if (found := _STAGE.fullmatch(word))]
    return next((pair for pair in named if pair[0] in stages or not stages), None)


def _settings(command: Command, stage: str) -> dict[str, str]:
    found = (_SETTING.fullmatch(word) for word in words(command.text))
    return {said[2]: said[3] for said in found if said and said[1] == stage}


def _example(command: Command, stage: str) -> str:
    said = [f"{key}={value}" for key, value in _settings(command, stage).items() if not has_substitution(value)]
    return plain(" ".join(said[:2]) or "trainer.num_nodes=4", 100)
