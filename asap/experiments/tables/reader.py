"""An experiment from the settings of a stack that has a table."""

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from asap.core.errors import ConfigError, PlanError
from asap.core.text import plain
from asap.experiments.experiment import Experiment
from asap.experiments.files.documents import validation_reason
from asap.experiments.settings.near_misses import near_misses
from asap.experiments.settings.optimizer_names import moments_of_bits, optimizer_family
from asap.experiments.settings.stack_settings import StackSettings, dotted, overriding
from asap.experiments.settings.unsaid import no_batch
from asap.experiments.tables.deepspeed import read_with_deepspeed
from asap.experiments.tables.model import with_model
from asap.experiments.tables.planned import keys_of, planned
from asap.models import Architecture, Workload
from asap.plans import Plan
from asap.stacks.detection import claimant
from asap.stacks.reading import axis_degree, global_batch_of, layout_of, meaning
from asap.stacks.registry import STACK, code, folder_of, irrelevant
from asap.stacks.spec import Spec, Word

_SAID = "stack"
"""The override by which a user says whose settings a file has."""
_UNREAD = "not read, as no {} has it, so that what it changes is not known: {}"
_MOST = 8


def stack_of_file(values: Mapping[str, Any], path: Path, overrides: Iterable[str] = ()) -> Spec | None:
    """The stack that a mapping is a configuration of; raises ConfigError where two claim it."""
    said = next((text.partition("=")[2] for text in overrides if text.startswith(f"{_SAID}=")), None)
    return claimant(dotted(values), str(path), said)


def is_setting(spec: Spec, values: Mapping[str, Any], key: str) -> bool:
    """Whether an override is one of a stack's settings, by its name or its section, and no field of a record."""
    name, known = plain_name(spec, key), spec.words() | {_SAID}
    section, _, field = name.partition(".")
    if name in known:
        return True
    if section in ("hardware", "plan", "workload") or (section == "model" and field in Architecture.model_fields):
        return False
    sections = {word.partition(".")[0] for word in known} | {plain_name(spec, said) for said in values}
    return section in sections and (bool(field) or section != "model")


def plain_name(spec: Spec, key: str) -> str:
    """A name as the table has it."""
    key = key.removeprefix("--")
    return key.replace("-", "_") if spec.dashes else key


def read_table(
    spec: Spec,
    values: Mapping[str, Any],
    path: Path,
    overrides: Iterable[str],
    experiment: Experiment,
    unsettled: frozenset[str] = frozenset(),
) -> Experiment:
    """``experiment`` with what a mapping says, by the table of its stack.

    Args:
        spec: the table.
        values: under the names of the stack, in sections or dotted.
        path: the file that says them.
        overrides: ``key=value`` of the user.
        experiment: what is known besides.
        unsettled: settings that a variable sets whose value is not known.

    Raises:
        ConfigError: it trains otherwise than is modelled, contradicts itself, or has a word without meaning.
        UsageError: an override is not ``key=value``.
    """
    said = {plain_name(spec, key): value for key, value in dotted(values).items()}
    given = overriding(overrides, lambda key: plain_name(spec, key))
    given.pop(_SAID, None)
    settings = StackSettings(said | given, str(path))
    own = code(folder_of(spec))
    if own is not None and hasattr(own, "prepared"):
        try:
            settings = StackSettings(own.prepared(dict(settings)), str(path))
        except ValueError as error:
            raise ConfigError(plain(str(error), 200), where=str(path)) from error
    _check(spec, settings)
    experiment = with_model(spec, settings, path, experiment)
    named = settings.get(spec.deepspeed or "", values.get(spec.deepspeed or ""))
    if named:
        return _under_deepspeed(spec, settings, named, path, experiment)
    full = spec.with_defaults(settings)
    try:
        sequence = _whole(field_of(spec, "sequence_length", full))
        hardware, unsettled = experiment.hardware, unsettled - given.keys()
        plan, notes = planned(spec, settings, hardware.devices, unsettled, hardware.slices)
        whole = {*keys_of(spec.batch.whole or spec.batch.micro)}
        batch = None if whole & unsettled else global_batch_of(spec, settings, plan, sequence)
        workload = _workload(spec, full, batch, experiment)
    except PlanError as error:
        raise ConfigError(error.message, where=settings.where(), hint=error.hint) from error
    experiment = _with_devices(spec, settings, plan, experiment)
    sizes = [word for word in (spec.batch.whole, spec.batch.micro) if word]
    if batch is None and (whole & unsettled or all(word.said(full) is None for word in sizes)):
        notes += (no_batch([sizes[0].keys[0]]),)
    said_by = ((field, key) for field, words in spec.workload.items() for key in word_keys(words) if key in settings)
    sources = {"plan": path.name, "workload": path.name} | {f"workload.{f}": settings.source(key) for f, key in said_by}
    return experiment.model_copy(
        update={
            "plan": plan,
            "workload": workload,
            "hyperparameters": experiment.hyperparameters | settings.harmless() | {STACK: spec.name},
            "provenance": experiment.provenance | sources,
            "notes": (*experiment.notes, *notes, *_notes(spec, full), *_misread(spec, settings)),
        }
    )


def _under_deepspeed(spec: Spec, settings: StackSettings, named: Any, path: Path, experiment: Experiment) -> Experiment:
    """A run that DeepSpeed shards, with the numerics that the stack says."""
    read = read_with_deepspeed(spec, settings, named, path, experiment)
    full = spec.with_defaults(settings)
    try:
        said = _fields(spec, full)
    except PlanError as error:
        raise ConfigError(error.message, where=settings.where(), hint=error.hint) from error
    known = read.workload.model_dump(exclude_none=True)
    kept = ("weight_precision", "sync_each_batch")
    workload = Workload.model_validate(known | {key: value for key, value in said.items() if key not in kept})
    notes = (*read.notes, *_notes(spec, full), *_misread(spec, settings))
    return read.model_copy(update={"workload": workload, "notes": notes})


def _check(spec: Spec, settings: StackSettings) -> None:
    for refusal in spec.refused:
        for key in settings:
            named = any(key == name or (name.endswith(".") and key.startswith(name)) for name in refusal.keys)
            if named and str(settings[key]).casefold() not in refusal.unless:
                shown = plain(str(settings[key]), 40)
                raise ConfigError(
                    f"{plain(key, 60)}: {shown}: {refusal.reason}, which is not modelled",
                    where=settings.where(key),
                    hint="give a run that trains all parameters of a decoder on tokens",
                )


def _with_devices(spec: Spec, settings: StackSettings, plan: Plan | None, experiment: Experiment) -> Experiment:
    """Where the degrees say all devices, the hardware that is said must have as many."""
    devices = experiment.hardware.devices
    if plan is None or devices == plan.devices:
        return experiment
    if devices is not None:
        degrees = [
            word.key(settings) for axis in ("replica", "model", "stage", "seq") if (word := getattr(spec.axes, axis))
        ]
        reason = f"{' x '.join(degrees)} is {plan.devices}, and the hardware has {devices} devices"
        hint = f"change a degree on the command line, such as {degrees[0]}=…"
        raise ConfigError(reason, where=settings.where(), hint=hint)
    return experiment.model_copy(update={"hardware": experiment.hardware.model_copy(update={"devices": plan.devices})})


def _workload(spec: Spec, settings: Mapping[str, object], batch: int | None, experiment: Experiment) -> Workload:
    found = _fields(spec, settings)
    found.setdefault("zero_stage", 3 if layout_of(spec, settings) != "replica" else 0)
    known = experiment.workload.model_dump(exclude_none=True)
    try:
        return Workload.model_validate({**known, **found, "global_batch": batch, "framework": spec.framework})
    except ValidationError as error:
        raise PlanError(validation_reason(error)) from error


def _fields(spec: Spec, settings: Mapping[str, object]) -> dict[str, Any]:
    """Fields of the workload that the settings say, by the table and by the stack's own code."""
    own = code(folder_of(spec))
    found = dict(spec.fields) | {field: field_of(spec, field, settings) for field in spec.workload}
    found |= own.workload(settings) if own is not None and hasattr(own, "workload") else {}
    if found.get("optimizer") is not None:
        found |= {"optimizer": optimizer_family(str(found["optimizer"])), **moments_of_bits(str(found["optimizer"]))}
    return {field: value for field, value in found.items() if value is not None}


def field_of(spec: Spec, field: str, settings: Mapping[str, object]) -> Any:
    """What the first word of a field of the workload says that is said; raises PlanError where it has no meaning."""
    words = spec.workload.get(field, ())
    for word in words if isinstance(words, tuple) else (words,):
        alone = word.beside is not None and axis_degree(spec, settings, word.beside) == 1
        if (found := None if alone else meaning(word, settings)) is not None:
            return found
    return None


def _whole(value: Any) -> int | None:
    return int(str(value)) if str(value).isdecimal() and int(str(value)) else None


def _notes(spec: Spec, settings: Mapping[str, object]) -> tuple[str, ...]:
    off = ("false", "none", "null", "0", "")
    found = []
    for note in spec.notes:
        said = [str(value).casefold() for key, value in settings.items() if _names(note.keys, key)]
        if any(value in note.only if note.only else value not in off for value in said):
            found.append(note.text)
    own = code(folder_of(spec))
    return (*found, *(own.notes(settings) if own is not None and hasattr(own, "notes") else ()))


def _names(names: tuple[str, ...], key: str) -> bool:
    return any(key == name or (name.endswith(".") and key.startswith(name)) for name in names)


def _misread(spec: Spec, settings: StackSettings) -> tuple[str, ...]:
    """A note on settings that no release has."""
    known = spec.words()
    without_effect = irrelevant(folder_of(spec))
    sections = {word.partition(".")[0] for word in (*known, *without_effect)}
    own = sorted({key.partition(".")[0] for key in settings} - sections)
    shown = ", ".join(plain(key, 40) for key in own[:_MOST])
    unread = (_UNREAD.format(spec.name, shown),) if own and without_effect else ()
    beginnings = tuple(name for name in known if name.endswith("."))
    asked = {key for key in settings if key not in known | without_effect and not key.startswith(beginnings)}
    return (*unread, *near_misses(asked, known - {*settings, *beginnings}))


def word_keys(words: Word | tuple[Word, ...]) -> tuple[str, ...]:
    """The names of one word or several."""
    return tuple(key for word in (words if isinstance(words, tuple) else (words,)) for key in word.keys)
