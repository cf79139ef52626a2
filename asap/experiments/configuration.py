"""One entrance for every configuration: MaxText, Hugging Face or our own, recognised by its keys."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

from asap.core.errors import ConfigError, UnreadError, UsageError
from asap.core.limits import FILE_LIMITS, within
from asap.core.text import plain
from asap.experiments.experiment import Experiment
from asap.experiments.files.documents import Document, read_document, read_text, unwrap
from asap.experiments.huggingface_model import read_huggingface
from asap.experiments.launch.job import manifests, read_job
from asap.experiments.logs.metrics_table import is_table
from asap.experiments.logs.read import is_log, log_of_folder
from asap.experiments.logs.record import read_log_record
from asap.experiments.maxtext import BASE, is_override, is_told_by, known_keys, read_maxtext
from asap.experiments.megatron.script import signs_among
from asap.experiments.other_stacks import read_as_document, read_as_text, read_script
from asap.experiments.record_file import (
    FIELDS,
    apply_field_overrides,
    named_hardware,
    read_record_file,
    split_overrides,
)
from asap.experiments.remarks import note_on_attention, note_on_paged, set_vocabulary
from asap.experiments.shell import is_script
from asap.experiments.tables.reader import read_table
from asap.stacks.maxtext.architecture import model_name_of
from asap.stacks.registry import instead_of_script, is_claimed, spec
from asap.stacks.trainer.arguments import TRAINER_MICRO_BATCH

OPTIONS = "options"
"""In the provenance of a record: its run has settings beside its configuration file, of a command or of the user."""
_HUGGING_FACE = ("model_type", "architectures")
_OF_RUN = {TRAINER_MICRO_BATCH, "_name_or_path", *_HUGGING_FACE}
_BLOCKING = "CUDA_LAUNCH_BLOCKING"
CONFIGURATIONS = (".yaml", ".yml", ".toml", ".json")
_ANYONES = {"model"}  # a field of a record that files of many programs have
_ONLY_MAXTEXT = frozenset(("per_device_batch_size", "max_target_length", "base_emb_dim"))
_READ = "docs/reads.md lists what is read"


def read_configuration(path: Path | None, overrides: Iterable[str], experiment: Experiment) -> Experiment:
    """``experiment`` with what a configuration file and ``key=value`` overrides say.

    Overrides are keys of MaxText for a MaxText configuration (or none), and fields of an experiment such as
    ``workload.global_batch=256`` for any.

    Raises:
        NotFoundError: there is no such file.
        ConfigError: it is malformed, hostile, of no known kind, or contradicts itself.
        UsageError: an override is not ``key=value``, or repeated.
    """
    overrides = tuple(overrides)
    experiment = apply_field_overrides(experiment, named_hardware(overrides))  # what a file says may depend on it
    try:
        found = set_vocabulary(_read(path, overrides, experiment))
    except UnreadError as error:
        raise _add_way_out(error, path) from error
    if found.environment.get(_BLOCKING) == "1":
        workload = found.workload.model_copy(update={"launch_blocking": True})
        found = found.knowing(workload=workload, provenance={"workload.launch_blocking": _BLOCKING})
    if path is not None and (is_script(path) or overrides):
        found = found.model_copy(update={"provenance": {**found.provenance, OPTIONS: path.name}})
    also = (*note_on_attention(found.hyperparameters), *note_on_paged(found.hyperparameters))
    notes = tuple(note for note in also if note not in found.notes)
    return found.model_copy(update={"notes": (*notes, *found.notes)}) if notes else found


_SLOWEST = 4 * 2**20  # bytes of a log, packed twenty times, that are read in a second of processor time


def read_untrusted(path: Path | None, overrides: Iterable[str], experiment: Experiment) -> Experiment:
    """:func:`read_configuration` within the limits of one file of its length; raises LimitReachedError besides."""
    where = plain(path, 200) if path else "overrides"
    length = path.stat().st_size if path and path.is_file() else 0
    limits = replace(FILE_LIMITS, seconds=FILE_LIMITS.seconds + length // _SLOWEST)
    return within(limits, lambda: read_configuration(path, overrides, experiment), where)


def files_of_folder(folder: Path) -> list[Path]:
    """Launch scripts and configurations that lie in a folder."""
    files = sorted(file for file in folder.iterdir() if file.is_file() and not file.name.startswith("."))
    return [file for file in files if is_script(file) or file.suffix in CONFIGURATIONS]


def read_folder(folder: Path, overrides: Iterable[str], experiment: Experiment) -> Experiment:
    """``experiment`` with the log below a folder, else its launch script or only configuration, as a note says.

    A ``config.json`` beside the log is that of its model; where the log does not show its model, the only
    configuration beside it is that of the run.

    Raises:
        UsageError: it has several.
        AsapError: what :func:`read_untrusted` raises.
    """
    files = files_of_folder(folder)
    if logs := log_of_folder(folder):
        log, count = logs
        of_model = log.with_name("config.json")
        known = read_untrusted(of_model, (), experiment) if of_model.is_file() else experiment
        read = read_untrusted(log, overrides, known)
        note = f"{log.relative_to(folder)} is read" + (f", of {count} logs in the folder" if count > 1 else "")
        beside = [file for file in files if file not in (log, of_model)]
        if read.model is None and len(beside) == 1:
            with suppress(ConfigError):
                whole = read_untrusted(log, (), read_untrusted(beside[0], overrides, experiment))
                if whole.measured or not read.measured:  # else the two contradict each other
                    read, note = whole, f"{note}, and {beside[0].name} for the settings that it does not show"
        return read.model_copy(update={"notes": (plain(note, 200), *read.notes)})
    found = [file for file in files if is_script(file)] or files
    if len(found) > 1:
        names = plain(", ".join(file.name for file in found), 160)
        raise UsageError(f"is a folder with {names}", where=plain(folder, 200), hint="give the one that starts the run")
    read = read_untrusted(found[0], overrides, experiment)
    if not (others := [file.name for file in files if file != found[0]]):
        return read
    note = f"{found[0].name} is read; of {plain(', '.join(others), 160)} beside it only what it names"
    return read.model_copy(update={"notes": (note, *read.notes)})


def _add_way_out(error: UnreadError, path: Path | None) -> UnreadError:
    """The refusal with what settles the same: the run's log, or the call that a script makes."""
    if path is None:
        return error
    runs = is_script(path) or path.suffix == ".py"
    way = instead_of_script(read_text(path) if runs else "", path)
    way = way if runs else way.partition(", or `asap resolve")[0]
    return UnreadError(
        error.message, where=error.where or str(path), hint=f"{error.hint}; or {way}" if error.hint else way
    )


def _read(path: Path | None, overrides: tuple[str, ...], experiment: Experiment) -> Experiment:
    if path is None:
        maxtext, fields = split_overrides(overrides, is_override)
        if maxtext:
            experiment = read_maxtext(Document(BASE, {}, {}), maxtext, experiment)
        return apply_field_overrides(experiment, fields)
    if is_log(path) or is_table(path):
        fields, rest = _fields_apart(overrides)
        experiment = apply_field_overrides(experiment, {key: fields[key] for key in fields if key == "model"})
        return apply_field_overrides(read_log_record(path, rest, experiment, read_settings, read_script), fields)
    if other := read_as_text(path, overrides, experiment):
        return other
    if found := manifests(path):
        return read_job(found, lambda text, file, known: read_script(text, file, overrides, known), experiment)
    document = read_document(path)
    document = replace(document, values=unwrap(document.values))
    return _read_document(document, overrides, experiment)


def _fields_apart(overrides: Iterable[str]) -> tuple[dict[str, str], list[str]]:
    """Overrides of a record's fields, and those of the stack's settings."""
    _, fields = split_overrides(
        [each for each in overrides if each.partition("=")[0] in FIELDS or "." in each], is_override
    )
    named = {f"{key}={value}" for key, value in fields.items()}
    return fields, [each for each in overrides if each not in named]


def read_settings(document: Document, overrides: Sequence[str], experiment: Experiment) -> Experiment:
    """What a block of settings in a log says; raises like :func:`read_configuration`."""
    if document.values.keys() & _ONLY_MAXTEXT:
        return read_maxtext(document, overrides, experiment)
    if signs_among(document.values) > 1 and not is_claimed(document.values):
        return read_table(spec("megatron"), document.values, document.path, overrides, experiment)
    return _read_document(document, overrides, experiment)


def _read_document(document: Document, overrides: Iterable[str], experiment: Experiment) -> Experiment:
    """What a YAML or JSON file of any stack says; raises like :func:`read_configuration`."""
    overrides, values = tuple(overrides), document.values
    if values.keys() >= _OF_RUN:  # of the Trainer, as W&B keeps it: the model's, and its arguments
        experiment = read_huggingface(document, experiment)
        said = {key: value for key, value in values.items() if key not in ("max_length", *_HUGGING_FACE)}
        document = replace(document, values={"model_name_or_path": values["_name_or_path"]} | said)
    if other := read_as_document(document, overrides, experiment):
        return other
    maxtext, fields = split_overrides(overrides, is_override if _is_maxtext(document) else lambda _: False)
    if _is_maxtext(document):
        experiment = read_maxtext(document, maxtext, experiment)
    elif any(key in document.values for key in _HUGGING_FACE):
        experiment = read_huggingface(document, experiment)
    else:
        document = replace(document, values=_without(document.values, fields))
        experiment = read_record_file(document, experiment)
    return apply_field_overrides(experiment, fields)


def _is_maxtext(document: Document) -> bool:
    keys = document.values.keys()
    if "schema" in keys or any(key in keys for key in _HUGGING_FACE):
        return False
    listed = {key: value if isinstance(value, list) else [value] for key, value in document.values.items()}
    settings = {key for key, values in listed.items() if not any(isinstance(each, dict) for each in values)}
    fields = keys & FIELDS
    ours = 0 if fields == _ANYONES and keys != _ANYONES else len(fields)
    theirs = len(settings & (known_keys() | {"base_config"}))
    known = 2 * max(ours, theirs) >= max(len(keys), 1)
    if known and theirs > ours:
        known = is_told_by(settings, document.path, model_name_of(document.values.get("model_name")))
    if not known and "base_config" not in keys:
        names = plain(", ".join(keys), 80) or "no keys"
        reason = f"is no configuration of a stack that is read: it has {names}"
        raise UnreadError(reason, where=str(document.path), hint=_READ)
    return theirs >= ours


def _without(values: Mapping[str, Any], overridden: Collection[str], prefix: str = "") -> dict[str, Any]:
    """A mapping without the values that are overridden, by their dotted keys."""
    return {
        key: _without(value, overridden, f"{prefix}{key}.") if isinstance(value, dict) else value
        for key, value in values.items()
        if f"{prefix}{key}" not in overridden
    }
