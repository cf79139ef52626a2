"""The model and the plan of settings, some of which only a run can tell, by the table of their stack."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from asap.core.errors import ConfigError
from asap.core.text import plain
from asap.experiments.experiment import Experiment
from asap.experiments.files.documents import Document, read_document, validated
from asap.experiments.huggingface_model import NO_MODEL, model_named_in, name_at_end, read_huggingface, read_named_model
from asap.experiments.remarks import NO_PLAN
from asap.models import Architecture
from asap.models.architecture import SHAPES
from asap.plans.degrees import InexpressiblePlanError
from asap.plans.plan import Plan, Remat
from asap.stacks.reading import from_settings
from asap.stacks.registry import hook
from asap.stacks.shapes import said_of, shapes_of
from asap.stacks.spec import Spec
from asap.stacks.stack_settings import StackSettings
from asap.stacks.words import word_keys


def add_model(
    spec: Spec, settings: StackSettings, path: Path, experiment: Experiment, unsettled: frozenset[str] = frozenset()
) -> Experiment:
    """``experiment`` with what is trained: the section of a Hugging Face configuration, shapes, or a name.

    Raises:
        ConfigError: it is of no kind that is read, or contradicts itself.
    """
    if model_of := hook(spec, "model_of"):
        shapes = {key for words in spec.model.shapes.values() for key in word_keys(*words)}
        open_ = unsettled & {*shapes, *spec.names.get("shapes", ())}
        said = ({}, (_HANGS.format(", ".join(sorted(open_))),)) if open_ else model_of(settings)
        return _from_code(spec, said, settings, experiment)
    if spec.model.section is not None:
        return _add_said(spec, settings, _from_section(spec, settings, path, experiment))
    beside = path.parent / spec.model.config if spec.model.config else path
    if beside != path and beside.is_file() and "model_type" in (document := read_document(beside)).values:
        return read_huggingface(document, experiment)
    return _add_said(spec, settings, _shaped_or_named(spec, settings, path, experiment))


def _from_code(
    spec: Spec,
    said: tuple[Architecture | str | Mapping[str, Any], tuple[str, ...]],
    settings: StackSettings,
    experiment: Experiment,
) -> Experiment:
    """The model that the stack's own code finds, or the one that is said where it leaves something open."""
    found, notes = said
    if isinstance(found, str) and (name := name_at_end(found)):
        found, notes = read_named_model(name)
    model = found if isinstance(found, Architecture) else Architecture()
    model = _validated(found, settings) if isinstance(found, Mapping) and found else model
    given = experiment.model
    if given is not None and (model.layers is None or (model.missing() and not given.missing())):
        return experiment
    notes = notes if found else notes or (NO_MODEL,)
    said_by = ((field, key) for field, words in spec.model.shapes.items() for key in word_keys(*words))
    shapes = {f"model.{f}": settings.source(key) for f, key in said_by if key in settings and getattr(model, f)}
    sources = {"model": settings.where().rpartition("/")[2]} | shapes
    return experiment.knowing(*notes, model=model, provenance=sources)


_HANGS = "the model is unknown: it hangs on {}; add them as key=value, or model=NAME"


def _shaped_or_named(spec: Spec, settings: StackSettings, path: Path, experiment: Experiment) -> Experiment:
    if experiment.model is not None and not experiment.model.missing():
        return experiment
    fields, said_by = _shapes(spec, settings)
    if "layers" in fields:
        given = experiment.model.model_dump(exclude_unset=True) if experiment.model else {}
        sources = {"model": path.name} | {f"model.{name}": settings.source(key) for name, key in said_by.items()}
        return experiment.knowing(model=_validated(fields | given, settings), provenance=sources)
    named = spec.model.name.said(settings) if spec.model.name else None
    whole = str(settings[spec.model.name.key(settings)]) if spec.model.name and named else ""
    said = named if named and spec.model.name and spec.model.name.pattern else whole
    model_name = hook(spec, "model_name")
    said = model_name(said) if said and model_name else said
    if not said or (name := name_at_end(said)) is None:
        return experiment if experiment.model else experiment.knowing(f"{NO_MODEL}{spec.model.beside}")
    found, notes = model_named_in(path, name)
    source = settings.source(spec.model.name.key(settings)) if spec.model.name else ""
    return experiment.knowing(*notes, model=found, provenance={"model": source})


def _add_said(spec: Spec, settings: StackSettings, experiment: Experiment) -> Experiment:
    """The model with fields that settings decide whatever it is."""
    found = {field: said for field, word in spec.model.over.items() if (said := said_of((word,), settings)) is not None}
    if experiment.model is None or not found:
        return experiment
    return experiment.model_copy(update={"model": _validated(experiment.model.model_dump() | found, settings)})


def _from_section(spec: Spec, settings: StackSettings, path: Path, experiment: Experiment) -> Experiment:
    """The decoder of a section whose keys are those of a Hugging Face ``config.json``."""
    section = f"{spec.model.section}."
    config: dict[str, Any] = {key.removeprefix(section): settings[key] for key in settings if key.startswith(section)}
    hint = f"give the model as {SHAPES} without the file, and --hardware, --batch, --sequence and --plan"
    if not config:
        reason = f"has no {spec.model.section}, where {spec.name} has the shapes of its model"
        raise ConfigError(reason, where=settings.where(), hint=hint)
    family = next((family for key, family in spec.model.flags.items() if config.get(key) is True), None)
    if family is None:
        kinds = ", ".join(spec.model.flags)
        reason = f"{spec.model.section} is of no kind that is read: {kinds}"
        raise ConfigError(reason, where=settings.where(), hint=hint)
    config |= {theirs: config[name] for name, theirs in spec.model.renamed.items() if config.get(name) is not None}
    return read_huggingface(Document(path, config | {"model_type": family}, {}), experiment)


def _shapes(spec: Spec, settings: StackSettings) -> tuple[dict[str, Any], dict[str, str]]:
    """Fields of the model, and settings that say them; none where its layers are not said, or they name another."""
    table = spec.model
    kind = table.family.said(settings) if table.family else None
    if table.families and kind not in (None, *table.families):
        reason = f"{table.family.key(settings) if table.family else 'model'} {plain(str(kind), 40)} is not read"
        raise ConfigError(reason, where=settings.where(), hint=f"read are {', '.join(table.families)}")
    found, said_by = shapes_of(table, settings, kind)
    shaped = any(key in settings for words in table.shapes.values() for key in word_keys(*words))
    by_kind = kind is not None and not (table.name and table.name.said(settings))
    return ({"name": kind, **found}, said_by) if "layers" in found and (shaped or by_kind) else ({}, {})


def _validated(fields: Mapping[str, Any], settings: StackSettings) -> Architecture:
    return validated(Architecture, fields, settings.where())


def planned(
    spec: Spec,
    settings: Mapping[str, object],
    devices: int | None,
    unsettled: frozenset[str],
    slices: int = 1,
    layers: int | None = None,
) -> tuple[Plan | None, tuple[str, ...]]:
    """The plan, ``None`` where it hangs on what is not settled, and what is to be said of it.

    Args:
        spec: the table of the stack.
        settings: under its names.
        devices: of the job, where they are known.
        unsettled: settings whose value is not known.
        slices: of TPUs.
        layers: of the model.

    Raises:
        PlanError: the degrees do not divide the devices, or a word has no meaning.
    """
    axes, batch = spec.axes, spec.batch
    moved = {key for one in spec.offload for key in word_keys(*one.keys)}
    words = (axes.seq, axes.model, axes.expert, axes.stage, axes.replica, axes.data, axes.slices, axes.strategy)
    degrees = ({*word_keys(*words), *spec.names.get("degrees", ())} | moved) & unsettled
    if devices is not None and degrees:
        return None, (f"{NO_PLAN}: it hangs on {', '.join(sorted(degrees))}; add them as key=value",)
    known = {key: value for key, value in settings.items() if key not in unsettled}
    open_batch = {*word_keys(batch.whole, batch.micro, batch.accumulation)} & unsettled
    try:
        plan = from_settings(spec, {**known, **dict.fromkeys(open_batch, None)}, devices, slices, layers)
    except InexpressiblePlanError as error:
        asks = devices is None and "how many devices" in error.message
        return None, (error.message if asks else f"{NO_PLAN}: {error.message}",)
    asked = {*word_keys(batch.whole or batch.micro)}
    recompute = {*word_keys(*spec.recompute), *spec.names.get("recomputation", ())} & unsettled
    counts = open_batch - asked if batch.accumulation else open_batch
    unsaid = spec.recompute_unsaid if plan.remat is Remat.NONE else None
    unknown = unsaid is not None and unsaid.holds({}, settings)
    update: dict[str, Any] = {"microbatches": None} if counts else {}
    update |= {"remat": None} if recompute or unknown else {}
    left = sorted((open_batch | (recompute & {*word_keys(*spec.recompute)})) - asked)
    notes = (f"set by a variable whose value is not said: {', '.join(left)}",) if left else ()
    notes += (unsaid.notes,) if unsaid and unknown else ()
    return plan.model_copy(update=update), notes
