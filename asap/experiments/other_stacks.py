"""Configurations of other training stacks, recognised by what they are: read, or told what to give instead."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from asap.core.errors import ConfigError
from asap.core.secrets import redacted
from asap.experiments import maxtext_script, primus, swift
from asap.experiments.accelerate import program as accelerate
from asap.experiments.accelerate import script as accelerate_script
from asap.experiments.accelerate import trainer_file
from asap.experiments.accelerate.arguments import is_setting as is_argument
from asap.experiments.experiment import Experiment
from asap.experiments.files.documents import Document, check_whole, read_text
from asap.experiments.launch.refusal import check_evaluated, refusal, refusal_of_text, refuse_mapping, refuse_script
from asap.experiments.maxtext import is_override, known_keys
from asap.experiments.megatron import nemo
from asap.experiments.megatron import script as megatron_script
from asap.experiments.processes import add_environment, note_unread_line, processes_of, set_devices, set_directives_gpu
from asap.experiments.record_file import FIELDS, apply_field_overrides, split_overrides
from asap.experiments.shell import Command, Start, find_start, inline_files, is_script, script_text, set_given
from asap.experiments.tables import deepspeed
from asap.experiments.tables import reader as tables
from asap.experiments.tables import script as table_script
from asap.stacks.launchers import COMMAND
from asap.stacks.megatron.sections import dialect
from asap.stacks.registry import OF_YAML, spec, specs
from asap.stacks.spec import Spec

_GIN = ".gin"

_Reader = Callable[[list[str], Experiment], Experiment | None]
"""Of the overrides that are the stack's own, and what is known besides; ``None`` where it is none of the stack's."""


@dataclass(frozen=True)
class _Row:
    """A reader of scripts of a stack.

    Args:
        find: what starts the stack in a script.
        read: what it starts, with the overrides that are the stack's.
        is_setting: whether an override is one of the stack's settings.
        takes: whether an override is for the stack, where it takes others than its settings, too.
    """

    find: Callable[[str, Path], Start | None]
    read: Callable[[Start, list[str], Experiment], Experiment | None]
    is_setting: Callable[[str], bool]
    takes: Callable[[str], bool] | None = None


def _by(starts: Callable[[Command], bool]) -> Callable[[str, Path], Start | None]:
    return lambda text, path: find_start(text, path, starts)


_SCRIPTS: tuple[_Row, ...] = (
    _Row(_by(swift.starts), swift.read_swift_script, swift.is_setting),
    _Row(_by(table_script.starts), table_script.read_table_script, table_script.is_setting),
    _Row(_by(accelerate_script.starts), accelerate_script.read_accelerate_script, is_argument),
    _Row(megatron_script.find_arguments, megatron_script.read_megatron_script, megatron_script.is_argument),
    _Row(_by(accelerate_script.starts_deepspeed), accelerate_script.read_accelerate_script, deepspeed.is_setting),
    _Row(_by(maxtext_script.starts), maxtext_script.read_maxtext_script, known_keys().__contains__, is_override),
)


def read_as_text(path: Path, overrides: Iterable[str], experiment: Experiment) -> Experiment | None:
    """``experiment`` with a script of another stack; ``None`` if it is none of theirs.

    Raises:
        ConfigError: it is one that is not read (the hint says what to give), or malformed.
    """
    if is_script(path):
        text = script_text(path)
        if (found := read_script(text, path, overrides, experiment)) is None:
            raise refuse_script(set_given(inline_files(text, path.parent), overrides, lambda _: False).script, path)
        return set_directives_gpu(text, path, found)
    if path.suffix == _GIN:
        raise refusal("gin configuration, as T5X has it", "model", path)
    if path.suffix in (".py", ".txt") and (refused := refusal_of_text("program", read_text(path), path)) is not None:
        raise refused
    if path.suffix == ".py":
        raise refusal("Python program", "model", path)
    return None


def read_script(text: str, path: Path, overrides: Iterable[str], experiment: Experiment) -> Experiment | None:
    """``experiment`` with what commands of a shell start; ``None`` where none is of a stack. Raises likewise."""
    check_evaluated(text, path)
    whole = inline_files(text, path.parent)
    found = _read_start(_STARTED, text, path, overrides, experiment, whole)
    if found is None and (refused := refusal_of_text("launcher", text, path)) is not None:
        raise refused
    read = (_read_start(row, text, path, overrides, experiment, whole) for row in _SCRIPTS)
    found = found or next(filter(None, read), None)
    return found and note_unread_line(text, path, found)


def _read_start(
    row: _Row, text: str, path: Path, overrides: Iterable[str], experiment: Experiment, whole: str
) -> Experiment | None:
    """What a script starts of one stack; ``None`` where it does not."""
    given = set_given(text, overrides, lambda key: key in FIELDS or row.is_setting(key), whole)
    if (start := row.find(given.script, path)) is None:
        return None
    if (read := _read(partial(row.read, start), row.takes or row.is_setting, given.rest, experiment)) is None:
        return None
    known = start.command.text if start.runs and row is not _STARTED else ""
    command = {COMMAND: redacted(" ".join(known.split()))} if known else {}
    return add_environment(start, read).knowing(*given.note(path.name), *start.notes(), provenance=command)


def _read_started(start: Start, overrides: list[str], experiment: Experiment) -> Experiment | None:
    """What a command starts with a YAML, or with options alone, where that is of a stack."""
    if (started := trainer_file.document_of(start)) is None:
        return None
    document, of_yaml = started
    experiment = set_devices(processes_of(start.command), experiment)
    if not trainer_file.is_training_file(document.values):
        return read_as_document(document, overrides, experiment)
    read = partial(trainer_file.read_trainer_file, document.values, of_yaml, document.path)
    return _read(read, is_argument, overrides, experiment)


_STARTED = _Row(
    _by(trainer_file.starts),
    _read_started,
    lambda key: is_argument(key) or table_script.is_setting(key),
    lambda _: True,
)


def read_as_document(document: Document, overrides: Iterable[str], experiment: Experiment) -> Experiment | None:
    """``experiment`` with a YAML or JSON file of another stack; ``None`` if it is none of theirs; raises likewise."""
    overrides = tuple(overrides)
    check_whole(document)
    if (found := _reader_of(document, overrides)) is None:
        return None
    read, is_setting = found
    return _read(read, is_setting, overrides, experiment)


def _read_table(table: Spec, document: Document, overrides: Iterable[str], experiment: Experiment) -> Experiment:
    read = tables.read_table(table, document.values, document.path, overrides, experiment)
    return read.knowing(hyperparameters={OF_YAML: True} if document.is_yaml else {})


def _reader_of(document: Document, overrides: Iterable[str] = ()) -> tuple[_Reader, Callable[[str], bool]] | None:
    """What reads a document, and whether an override is one of its stack's settings."""
    values, path = document.values, document.path
    if swift.is_arguments_file(values):
        return partial(swift.read_arguments_file, values, path), swift.is_setting
    if "schema" in values or ("model_type" in values and "base_model" not in values):
        return None
    if (table := tables.stack_of_file(values, path, overrides)) is not None:
        return partial(_read_table, table, document), partial(tables.is_setting, table, values)
    refuse_mapping("configuration", values, path)
    of_toml = next(one for one in specs().values() if one.form == "toml")
    if path.suffix == ".toml" and not values.keys().isdisjoint(of_toml.files.own):
        return partial(_read_table, of_toml, document), partial(tables.is_setting, of_toml, values)
    if primus.is_primus(values):
        return partial(primus.read_primus, values, path), partial(primus.is_setting, values)
    if accelerate.is_accelerate(values):
        return partial(accelerate.read_accelerate, values, path), is_argument
    if trainer_file.is_training_file(values):
        return partial(trainer_file.read_trainer_file, values, True, path, alone=True), is_argument
    if kind := dialect(values):
        return partial(nemo.read_nemo, values, kind, path), partial(nemo.is_setting, values)
    refuse_mapping("remaining", values, path)
    if (found := megatron_script.mapping_arguments(values, path, document.lines)) is not None:
        return partial(tables.read_table, spec("megatron"), found, path), megatron_script.is_argument
    if deepspeed.is_deepspeed(values):
        return partial(tables.read_table, spec("deepspeed"), values, path), deepspeed.is_setting
    return None


def _read(
    read: _Reader, is_setting: Callable[[str], bool], overrides: Iterable[str], experiment: Experiment
) -> Experiment | None:
    """``experiment`` with what a reader takes and the fields that are said: the model before it, all after it."""
    theirs, ours = split_overrides(overrides, is_setting)
    model = {key: value for key, value in ours.items() if key.partition(".")[0] == "model"}
    try:
        found = read(theirs, apply_field_overrides(experiment, model))
    except ConfigError as error:
        error.of_stack = True
        raise
    return found and apply_field_overrides(found, ours)
