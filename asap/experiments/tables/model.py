"""The model that settings train, by the table of their stack."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from asap.core.errors import ConfigError
from asap.core.text import plain
from asap.experiments.experiment import Experiment
from asap.experiments.files.documents import Document, validation_reason
from asap.experiments.huggingface.reader import read_huggingface
from asap.experiments.named_model import NO_MODEL, SHAPES, name_at_end, read_named_model
from asap.models import Architecture, find_architecture
from asap.stacks.registry import code, folder_of
from asap.stacks.spec import Meaning, Spec, Word, word_keys
from asap.stacks.stack_settings import StackSettings


def with_model(spec: Spec, settings: StackSettings, path: Path, experiment: Experiment) -> Experiment:
    """``experiment`` with what is trained: the section of a Hugging Face configuration, shapes, or a name.

    Raises:
        ConfigError: it is of no kind that is read, or contradicts itself.
    """
    if spec.model.section is not None:
        return _with_fields(spec, settings, _of_section(spec, settings, path, experiment))
    return _with_said(spec, settings, _shaped_or_named(spec, settings, path, experiment))


def _shaped_or_named(spec: Spec, settings: StackSettings, path: Path, experiment: Experiment) -> Experiment:
    if experiment.model is not None and not experiment.model.missing():
        return experiment
    fields = _shapes(spec, settings)
    if "layers" in fields:
        source = experiment.provenance | {"model": path.name}
        given = experiment.model.model_dump(exclude_unset=True) if experiment.model else {}
        model = _validated(fields | given, settings)
        return _with_fields(spec, settings, experiment.model_copy(update={"model": model, "provenance": source}))
    named = spec.model.name.said(settings) if spec.model.name else None
    said = str(settings[spec.model.name.key(settings)]) if spec.model.name and named else ""
    own = code(folder_of(spec))
    said = own.model_name(said) if said and own is not None and hasattr(own, "model_name") else said
    if not said or (name := name_at_end(said)) is None:
        return experiment.model_copy(update={"notes": (*experiment.notes, NO_MODEL)})
    found, notes = read_named_model(name)
    sources = experiment.provenance | {
        "model": settings.source(spec.model.name.key(settings)) if spec.model.name else ""
    }
    return experiment.model_copy(update={"model": found, "notes": (*experiment.notes, *notes), "provenance": sources})


def _with_said(spec: Spec, settings: StackSettings, experiment: Experiment) -> Experiment:
    """The model with fields that settings decide whatever it is."""
    found = {field: said for field, word in spec.model.over.items() if (said := _said(word, settings)) is not None}
    if experiment.model is None or not found:
        return experiment
    return experiment.model_copy(update={"model": experiment.model.model_copy(update=found)})


def _of_section(spec: Spec, settings: StackSettings, path: Path, experiment: Experiment) -> Experiment:
    """The decoder of a section whose keys are those of a Hugging Face ``config.json``."""
    section, own = f"{spec.model.section}.", code(folder_of(spec))
    config: dict[str, Any] = {key.removeprefix(section): settings[key] for key in settings if key.startswith(section)}
    if not config:
        reason = f"has no {spec.model.section}, where {spec.name} has the shapes of its model"
        hint = f"give the model as {SHAPES} without the file, and --hardware, --batch, --sequence and --plan"
        raise ConfigError(reason, where=settings.where(), hint=hint)
    family = next((family for key, family in spec.model.flags.items() if config.get(key) is True), None)
    if family is None:
        kinds = ", ".join(spec.model.flags)
        raise ConfigError(f"{spec.model.section} is of no kind that is read: {kinds}", where=settings.where())
    config |= {theirs: config[name] for name, theirs in spec.model.renamed.items() if config.get(name) is not None}
    for key, value in (own.configured(settings) if own else {}).items():
        config = {key: value, **config} if key == "intermediate_size" else {**config, key: value}
    return read_huggingface(Document(path, config | {"model_type": family}, {}), experiment)


def _with_fields(spec: Spec, settings: StackSettings, experiment: Experiment) -> Experiment:
    """The model with what the stack's own code says of it."""
    own, model = code(folder_of(spec)), experiment.model
    if own is None or model is None or not hasattr(own, "model_fields"):
        return experiment
    try:
        found = {field: value for field, value in own.model_fields(settings).items() if value is not None}
    except ValueError as error:
        raise ConfigError(plain(str(error), 200), where=settings.where()) from error
    return experiment.model_copy(update={"model": _validated(model.model_dump() | found, settings)})


def _shapes(spec: Spec, settings: StackSettings) -> dict[str, Any]:
    """Fields of an architecture as they are said, then as the kind of model implies, then as they follow."""
    table = spec.model
    kind = table.family.said(settings) if table.family else None
    if table.families and kind not in (None, *table.families):
        reason = f"{table.family.key(settings) if table.family else 'model'} {plain(str(kind), 40)} is not read"
        raise ConfigError(reason, where=settings.where(), hint=f"read are {', '.join(table.families)}")
    implied: Mapping[str, Meaning] = table.families.get(kind or next(iter(table.families), ""), {})
    fields: dict[str, Any] = {"name": kind}
    for field, words in table.shapes.items():
        value = _said(words, settings)
        value = implied.get(field) if value is None else value
        if value is not None:
            fields[field] = value
    fields = {**implied, **fields}
    shaped = any(key in settings for word in table.shapes.values() for key in word_keys(word))
    by_kind = kind is not None and not (table.name and table.name.said(settings))
    if "layers" not in fields or not (shaped or by_kind):
        return {}
    vocabulary = table.vocabulary.said(settings) if table.vocabulary else None
    named = find_architecture(vocabulary) if vocabulary and "vocab" not in fields else None
    fields |= {"vocab": named.vocab} if named is not None and named.vocab else {}
    heads, width = _number(fields.get("heads")), _number(fields.get("d_model"))
    fields.setdefault("kv_heads", heads or None)
    if heads and width and not width % heads:
        fields.setdefault("head_dim", width // heads)
    if table.width and width:
        fields.setdefault("d_ff", table.width * width)
    return {field: value for field, value in fields.items() if value is not None}


def _said(words: Word | tuple[Word, ...], settings: StackSettings) -> Any:
    for word in words if isinstance(words, tuple) else (words,):
        try:
            found = word.meaning(settings)
        except ValueError as error:
            key = word.key(settings)
            raise ConfigError(f"{key} must be {error}", where=settings.where(key)) from error
        if found is not None:
            return found
    return None


def _number(value: Any) -> int:
    return int(str(value)) if str(value).isdecimal() else 0


def _validated(fields: Mapping[str, Any], settings: StackSettings) -> Architecture:
    try:
        return Architecture.model_validate(fields)
    except ValidationError as error:
        raise ConfigError(validation_reason(error), where=settings.where()) from error
