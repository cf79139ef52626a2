"""Fields of an experiment as a person writes them: in our own experiment file, or as ``workload.global_batch=256``.

Short forms: ``plan: data=16 model=8``, ``model: llama3.1-70b``, ``hardware: v5e-256``, ``topology: 16x16``.
"""

import difflib
from collections.abc import Callable, Collection, Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError

from asap.core.errors import ConfigError, NotFoundError, UsageError
from asap.core.text import plain
from asap.experiments.experiment import SCHEMA, Experiment, HardwareReference, refer_to_hardware
from asap.experiments.files.documents import Document, blamed_on, validated, validation_reason
from asap.experiments.files.yaml_text import parse_yaml
from asap.experiments.remarks import still_open
from asap.hardware import parse_topology
from asap.models import Architecture, Workload, find_architecture, known_architectures
from asap.models.architecture import SHAPES
from asap.plans import Plan
from asap.stacks.stack_settings import not_a_setting

FIELDS = frozenset(field.alias or name for name, field in Experiment.model_fields.items())
_PATHS = ("profile_path", "facts_path")
_OVERRIDE = "override"

_Section = TypeVar("_Section", bound=BaseModel)


def read_record_file(document: Document, experiment: Experiment) -> Experiment:
    """``experiment`` with the fields of our own file; the file's ID does not count, its paths start at the file.

    Raises:
        ConfigError: an unknown field (the nearest one is in the hint) or a value that does not fit.
    """
    schema = document.values.get("schema", SCHEMA)
    if schema != SCHEMA:
        raise ConfigError(f"has the schema {plain(schema, 40)}, not {SCHEMA}", where=document.place("schema"))
    values = {key: value for key, value in document.values.items() if key not in ("schema", "id")}
    for key in _PATHS:
        if isinstance(values.get(key), str):
            values[key] = str((document.path.parent / values[key]).absolute())
    return _set_fields(experiment, values, document.place)


def split_overrides(overrides: Iterable[str], is_setting: Callable[[str], bool]) -> tuple[list[str], dict[str, str]]:
    """Overrides of settings of a stack as they are, and those of fields of a record by their dotted key.

    Raises:
        UsageError: one of a field is not ``key=value``, or given twice.
        ConfigError: one is neither.
    """
    settings: list[str] = []
    fields: dict[str, str] = {}
    for override in overrides:
        key, separator, value = override.partition("=")
        if is_setting(key) and not named_hardware([override]):
            settings.append(override)
        elif not separator:
            raise not_a_setting(override)
        elif key in fields:
            raise UsageError("is given twice", where=plain(key, 80))
        elif key.partition(".")[0] not in FIELDS:
            raise _unknown(key, FIELDS, _OVERRIDE, _NEITHER)
        else:
            fields[key] = value
    return settings, fields


def named_hardware(overrides: Iterable[str]) -> dict[str, str]:
    """The override that says which machine runs; MaxText has a setting of that name, ``hardware=gpu``."""
    found: dict[str, str] = {}
    for key, _, value in (one.partition("=") for one in overrides):
        with suppress(NotFoundError, ConfigError):
            found |= {key: value} if key == "hardware" and refer_to_hardware(value)[0].name else {}
    return found


def apply_field_overrides(experiment: Experiment, overrides: Mapping[str, str]) -> Experiment:
    """``experiment`` with dotted fields replaced; raises like :func:`read_record_file`."""
    if not overrides:
        return experiment
    values: dict[str, Any] = {}
    for dotted, text in overrides.items():
        key, _, inner = dotted.partition(".")
        value = text if key == "plan" and not inner else parse_yaml(text, f"{_OVERRIDE} {dotted}")[0]
        if inner and isinstance(values.setdefault(key, {}), dict):
            values[key][inner] = value
        else:
            values[key] = value
    return _set_fields(experiment, values, lambda key: f"{_OVERRIDE} {key}")


def _set_fields(experiment: Experiment, values: Mapping[str, Any], place: Callable[[str], str]) -> Experiment:
    update: dict[str, Any] = {}
    notes: tuple[str, ...] = ()
    provenance: dict[str, str] = {}
    for key, value in values.items():
        if key not in FIELDS or key in ("schema", "id"):
            raise _unknown(key, FIELDS, place(key))
        if value is None or value in ({}, []):
            continue
        inner = [f"{key}.{name}" for name in value if value[name] is not None] if isinstance(value, dict) else []
        provenance |= dict.fromkeys(inner or [key], Path(place(key)).name)
        try:
            update[key], more = _value(key, value, experiment, place(key))
        except ValidationError as error:
            raise ConfigError(validation_reason(error), where=place(key)) from error
        notes += more
    found = validated(Experiment, dict(experiment) | update, place(""))
    devices = found.hardware.devices
    if found.plan and devices and found.plan.devices != devices:
        reason = f"multiplies to {found.plan.devices} devices, and the hardware has {devices}"
        raise ConfigError(f"the plan {reason}", where=place("plan"))
    open_ = still_open(found.notes, provenance)
    provenance = experiment.provenance | provenance | update.get("provenance", {})
    return found.model_copy(update={"notes": (*open_, *notes), "provenance": provenance})


def _value(key: str, value: Any, experiment: Experiment, place: str) -> tuple[Any, tuple[str, ...]]:
    with blamed_on(place):
        if key == "plan":
            said = isinstance(value, str)
            return Plan.parse(value) if said else _merged(Plan, experiment.plan or Plan(), value, place), ()
        if key == "model":
            return _model(value, experiment.model, place), ()
        if key == "workload":
            return _merged(Workload, experiment.workload, value, place), ()
        if key == "hardware":
            return _hardware(value, experiment.hardware, place)
    return value, ()


def _model(value: Any, current: Architecture | None, place: str) -> Architecture:
    if not isinstance(value, str):
        return _merged(Architecture, current or Architecture(), value, place)
    found = find_architecture(value)
    if found is None:
        near = difflib.get_close_matches(value, known_architectures(), n=3, cutoff=0.4)
        hint = f"nearest: {', '.join(near)}; or {SHAPES}" if near else f"add {SHAPES}"
        raise ConfigError(f"the model {plain(value, 60)} is not known", where=place, hint=hint)
    return found


def _hardware(value: Any, current: HardwareReference, place: str) -> tuple[HardwareReference, tuple[str, ...]]:
    said = {"name": value} if isinstance(value, str) else value
    if isinstance(said, dict) and isinstance(said.get("topology"), str):
        said = said | {"topology": parse_topology(said["topology"])}
    merged = _merged(HardwareReference, current, said, place)
    if not merged.name:
        return merged, ()
    slices = merged.slices if "slices" in merged.model_fields_set else None
    found, notes = refer_to_hardware(merged.name, merged.topology, slices, merged.devices)
    if merged.chip not in (None, found.chip):
        raise ConfigError(f"chip {plain(merged.chip, 40)} contradicts the name {plain(merged.name, 40)}", where=place)
    return found, notes


def _merged(kind: type[_Section], current: _Section, value: Any, place: str) -> _Section:
    if not isinstance(value, dict):
        raise ConfigError(f"is not a mapping: {plain(value, 40)}", where=place)
    for key in value:
        if key not in kind.model_fields:
            raise _unknown(key, kind.model_fields, place)
    said = {key: getattr(current, key) for key in current.model_fields_set}
    return kind.model_validate(said | {key: item for key, item in value.items() if item is not None})


def _unknown(key: str, known: Collection[str], place: str, otherwise: str = "") -> ConfigError:
    near = difflib.get_close_matches(key.partition(".")[0], known, n=1)
    hint = f"did you mean {near[0]}?" if near else otherwise or f"known are {', '.join(sorted(known))}"
    return ConfigError(f"unknown {'key' if otherwise else 'field'} {plain(key, 60)}", where=place, hint=hint)


_NEITHER = "neither the stack nor a record has it, and no variable of a script is called so"
