"""A run with other settings of its launcher, read anew from the settings on its record."""

from collections.abc import Collection, Mapping
from contextlib import suppress
from difflib import get_close_matches
from pathlib import Path
from typing import Any

from asap.core.errors import AsapError, InsufficientEvidenceError, UsageError
from asap.core.text import plain
from asap.experiments.accelerate.arguments import ARGUMENTS, is_setting
from asap.experiments.accelerate.program import Program, read_program
from asap.experiments.accelerate.trainer_file import in_words_of_trainer
from asap.experiments.configuration import CONFIGURATIONS, read_settings
from asap.experiments.experiment import Experiment
from asap.experiments.files.documents import Document
from asap.experiments.tables.reader import read_table
from asap.stacks.accelerate.stack import KIND
from asap.stacks.deepspeed.stack import IN_FILE
from asap.stacks.registry import OURS, STACK, folder_of, irrelevant, spec, specs, table_of
from asap.stacks.rules import drop_implied
from asap.stacks.spec import Spec
from asap.stacks.trainer.arguments import AUTO, SECTION, TRAINER_MICRO_BATCH
from asap.stacks.words import Word

_SECTION, _RECORD = f"{SECTION}.", Path("settings on record")
_MISSPELT = 0.94  # likeness from which a word is taken for a misspelt setting


def key_of_launcher(experiment: Experiment, word: str) -> str | None:
    """The setting of a run's launcher that a word names, whole or from one of its sections on; ``None`` where it names
    none, or several.

    Raises:
        UsageError: it is all but the name of one.
    """
    name, said, known = word.lstrip("-").replace("-", "_"), *_keys(experiment)
    for keys in (said, known):
        found = {key for key in keys if key == name or key.endswith(f".{name}")}
        if name in found or len(found) == 1:
            return name if name in found else found.pop()
        if found and (one := _latest_name(experiment, found)):
            return one
    near = get_close_matches(name, {key.rpartition(".")[2] for key in (*said, *known)}, 1, _MISSPELT)
    if near and near[0] != name:
        raise UsageError("is no setting of this run's launcher", where=plain(word, 60), hint=f"did you mean {near[0]}?")
    return None


def _latest_name(experiment: Experiment, found: set[str]) -> str | None:
    """Of names that a degree or a batch had through the releases, the latest; ``None`` where they are of several."""
    table = table_of(experiment.workload.framework)
    words = (*dict(table.axes).values(), *dict(table.batch).values()) if table is not None else ()
    alike = (word.keys for word in words if isinstance(word, Word) and found <= {*word.keys})
    return next((key for keys in alike for key in keys if key in found), None)


def _keys(experiment: Experiment) -> tuple[set[str], set[str]]:
    """Settings on record whose value is said, and all that its launcher has."""
    table, said = table_of(experiment.workload.framework), experiment.hyperparameters
    known = {*table.words, *irrelevant(folder_of(table))} if table is not None else set[str]()
    place = _SECTION if any(key.startswith(_SECTION) for key in said) else ""
    if place or TRAINER_MICRO_BATCH in said or (table is not None and table.contract == "deepspeed"):
        known |= {f"{place}{key}" for key in (*ARGUMENTS, *irrelevant("trainer"))}
    return {key for key, value in said.items() if value != AUTO}, known


def apply_launcher_settings(experiment: Experiment, changed: dict[str, str]) -> Experiment:
    """The record as its launcher would run it with other settings.

    Args:
        experiment: of a run whose settings are on record.
        changed: whole keys of the launcher, and their values as they would be typed.

    Raises:
        InsufficientEvidenceError: its settings alone do not give the record again, as other files say the rest.
        ConfigError: the launcher would refuse them, or what they say is not modelled.
    """
    if named := next((value for value in changed.values() if Path(value).suffix in CONFIGURATIONS), None):
        raise InsufficientEvidenceError(
            "names a file, which is not read here", where=plain(named, 60), hint="`asap analyze FILE KEY=VALUE`",
        )  # fmt: skip
    said = {key: value for key, value in experiment.hyperparameters.items() if not key.startswith(OURS)}
    again, table = None, _names_deepspeed(said, changed)
    own = next((one for one in specs().values() if one.name == experiment.hyperparameters.get(STACK)), None)
    said = drop_implied(own.means, said) if own else said
    with suppress(AsapError):
        again = _read(experiment, said, table)
    if again is None or (again.plan, again.workload) != (experiment.plan, experiment.workload):
        raise InsufficientEvidenceError(
            "this run cannot be read again from its settings alone", where=plain(" ".join(changed), 60),
            hint="`asap analyze FILE KEY=VALUE`",
        )  # fmt: skip
    twins = {f"{_SECTION}{key}": value for key, value in changed.items() if f"{_SECTION}{key}" in said}
    found = _read(experiment, said | changed | twins, table)
    if found.plan is None:
        why = next(iter(found.notes), "settings that other files say decide it")
        raise InsufficientEvidenceError(f"leaves the plan open: {why}", where=plain(" ".join(changed), 60))
    return found.model_copy(update={"notes": tuple(note for note in found.notes if note not in again.notes)})


def _names_deepspeed(said: Mapping[str, Any], changed: Collection[str]) -> Spec | None:
    """The table of a stack that names DeepSpeed's configuration, and has words for all that changes."""
    tables = (one for one in specs().values() if one.deepspeed in said and {*one.files.needs} <= said.keys())
    return next((one for one in tables if one.words >= {*changed}), None)


def _read(experiment: Experiment, said: Mapping[str, Any], table: Spec | None) -> Experiment:
    """What these settings say, by their own table or by that one, under the environment of the run."""
    alone = Experiment(id=experiment.id, hardware=experiment.hardware, model=experiment.model)
    read = read_table(table, said, _RECORD, (), alone) if table else _by_stack(experiment, said, alone)
    blocking = {"launch_blocking": experiment.workload.launch_blocking}
    return read.model_copy(update={"workload": read.workload.model_copy(update=blocking)})


def _by_stack(experiment: Experiment, said: Mapping[str, Any], alone: Experiment) -> Experiment:
    path, named = _RECORD, experiment.hyperparameters.get(STACK)
    table = next((one for one in specs().values() if one.name == named), None)
    arguments = {key: key.removeprefix(_SECTION) for key in said if key.startswith(_SECTION)}
    of_yaml = not arguments
    if of_yaml and said.keys() & ARGUMENTS:
        arguments = {key: key for key in said if key in ARGUMENTS or not is_setting(key)}
    by_deepspeed = table is not None and table.contract == "deepspeed"
    if arguments and (by_deepspeed or not of_yaml):
        program = in_words_of_trainer({name: said[key] for key, name in arguments.items()}, path)
        rest = {key: value for key, value in said.items() if key not in arguments}
        own = {spec("deepspeed").renamed.get(key, key): value for key, value in rest.items() if key != KIND}
        launched = {KIND: "DEEPSPEED", IN_FILE: own} if by_deepspeed else rest
        return read_program(Program(path, program, launched, of_yaml=of_yaml), (), alone)
    if table is not None:
        return read_table(table, said, path, (), alone)
    return read_settings(Document(path, dict(said), {}), (), alone)
