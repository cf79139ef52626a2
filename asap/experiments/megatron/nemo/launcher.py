"""Scripts of NeMo's launcher: ``python3 launcher_scripts/main.py stages=[training] training=llama/llama2_7b
training.trainer.num_nodes=4``, of which ``conf/training/llama/llama2_7b.yaml`` is a configuration of NeMo; also of the
stages that tune."""

import re
from collections.abc import Iterable
from pathlib import Path

from asap.core.errors import ConfigError
from asap.core.text import plain
from asap.experiments.experiment import Experiment
from asap.experiments.files.named_file import Brought, find_named
from asap.experiments.megatron.reader import read_nemo
from asap.experiments.megatron.yaml_dialects import NEMO, argument_of, dialect
from asap.experiments.shell import Command, has_substitution, read_commands, with_sources, words

_PROGRAM = re.compile(r"(?:^|[\s/])main\.py\s")
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
    if command.assigns or not command.certain or not _PROGRAM.search(f" {command.text} "):
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
