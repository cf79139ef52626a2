"""A run with other settings of its launcher, read anew from the settings on its record."""

from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import yaml

from asap.core.errors import AsapError, InsufficientEvidenceError
from asap.core.text import plain
from asap.experiments.accelerate.arguments import ARGUMENTS
from asap.experiments.accelerate.program import DEEPSPEED, Program, read_program
from asap.experiments.configuration import read_settings
from asap.experiments.experiment import Experiment
from asap.experiments.files.documents import Document
from asap.experiments.tables.reader import read_table
from asap.stacks.registry import STACK, folder_of, irrelevant, specs, table_of
from asap.stacks.spec import Spec
from asap.stacks.trainer.arguments import AUTO, SECTION

_OURS, _SECTION = "asap.", f"{SECTION}."


def key_of_launcher(experiment: Experiment, word: str) -> str | None:
    """The setting of a run's launcher that a word names, whole or from one of its sections on; ``None`` where it names
    none, or several."""
    name, table = word.lstrip("-").replace("-", "_"), table_of(experiment.workload.framework)
    known = table.words() | irrelevant(folder_of(table)) if table is not None else frozenset()
    said = {key for key, value in experiment.hyperparameters.items() if value != AUTO}
    for keys in (said, known):
        found = [key for key in keys if key == name or key.endswith(f".{name}")]
        if name in found or len(found) == 1:
            return name if name in found else found[0]
    return None


def with_launcher_settings(experiment: Experiment, changed: Mapping[str, str]) -> Experiment:
    """The record as its launcher would run it with other settings.

    Args:
        experiment: of a run whose settings are on record.
        changed: whole keys of the launcher, and their values as they would be typed.

    Raises:
        InsufficientEvidenceError: its settings alone do not give the record again, as other files say the rest.
        ConfigError: the launcher would refuse them, or what they say is not modelled.
    """
    said = {key: value for key, value in experiment.hyperparameters.items() if not key.startswith(_OURS)}
    again = None
    with suppress(AsapError):
        again = _read(experiment, said)
    if again is None or (again.plan, again.workload) != (experiment.plan, experiment.workload):
        raise InsufficientEvidenceError(
            "more than the settings on record decides this run", where=plain(" ".join(changed), 60),
            hint="asap analyze FILE KEY=VALUE",
        )  # fmt: skip
    return _read(experiment, said | {key: yaml.safe_load(value) for key, value in changed.items()})


def _read(experiment: Experiment, said: Mapping[str, Any]) -> Experiment:
    path, table = Path("settings on record"), _table(experiment)
    alone = Experiment(id=experiment.id, hardware=experiment.hardware, model=experiment.model)
    arguments = {key: key.removeprefix(_SECTION) for key in said if key.startswith(_SECTION)}
    of_yaml = not arguments
    if of_yaml:
        arguments = {key: key for key in said if key in ARGUMENTS}
    if arguments and table is not None and table.contract == "deepspeed":
        configuration = {key: value for key, value in said.items() if key not in arguments}
        program = {name: said[key] for key, name in arguments.items()} | {DEEPSPEED: configuration}
        return read_program(Program(path, program, {}, of_yaml=of_yaml), (), alone)
    if table is not None:
        return read_table(table, said, path, (), alone)
    return read_settings(Document(path, dict(said), {}), (), alone)


def _table(experiment: Experiment) -> Spec | None:
    said = experiment.hyperparameters.get(STACK)
    return next((one for one in specs().values() if one.name == said), None)
