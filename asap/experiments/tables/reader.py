"""An experiment from the settings of a stack that has a table."""

import math
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from asap.core.errors import ConfigError
from asap.core.numbers import digits
from asap.core.text import plain
from asap.experiments.experiment import Experiment
from asap.experiments.files.documents import blamed_on, validated
from asap.experiments.launch.refusal import refuse
from asap.experiments.processes import set_devices, set_nodes
from asap.experiments.remarks import no_batch, table_notes
from asap.experiments.shell import has_substitution
from asap.experiments.tables.deepspeed import named_configuration
from asap.experiments.tables.model import add_model, planned
from asap.hardware.instances import find_instance
from asap.levers.state import optimizer_fields
from asap.models import Architecture, Workload
from asap.plans import AXES, Plan, Remat
from asap.stacks import registry
from asap.stacks.deepspeed import stack as zero
from asap.stacks.reading import axis_degree, field_of, global_batch_of, key_of, layout_of, meaning, moves
from asap.stacks.registry import STACK, claimant, hook
from asap.stacks.rules import facts_of, meant
from asap.stacks.spec import Spec
from asap.stacks.stack_settings import StackSettings, dotted, overriding, resolved
from asap.stacks.trainer.arguments import AUTO, RECOMPUTE
from asap.stacks.unread import relocated, unread
from asap.stacks.words import word_keys

_SAID = "stack"  # the override by which a user says whose settings a file has


def stack_of_file(values: Mapping[str, Any], path: Path, overrides: Iterable[str] = ()) -> Spec | None:
    """The stack that a mapping is a configuration of; raises ConfigError where two claim it."""
    said = next((text.partition("=")[2] for text in overrides if text.startswith(f"{_SAID}=")), None)
    return claimant(dotted(values), str(path), said)


def is_setting(spec: Spec, values: Mapping[str, Any], key: str) -> bool:
    """Whether an override is one of a stack's settings, by its name or its section, and no field of a record."""
    name, known = plain_name(spec, key), spec.words | {_SAID}
    section, _, field = name.partition(".")
    if name in known:
        return True
    if section in ("hardware", "plan", "workload") or (section == "model" and field in Architecture.model_fields):
        return False
    sections = {word.partition(".")[0] for word in known | spec.sections.keys()} | {
        plain_name(spec, said) for said in values
    }
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
    elsewhere = relocated(spec, said)
    said = {elsewhere.get(key, key): value for key, value in said.items()}
    given = overriding(overrides, lambda key: plain_name(spec, key))
    given.pop(_SAID, None)
    places = values.places if isinstance(values, StackSettings) else {}
    settings = StackSettings(resolved(said | given), str(path), places)
    unsettled -= given.keys()
    found = _open(spec, settings, given)
    unsettled |= found
    settings = settings.overridden(dict.fromkeys(unsettled))
    experiment = _set_said_devices(spec, settings, unsettled, experiment)
    settings = settings.overridden(meant(spec.means, settings))
    if prepared := hook(spec, "prepared"):
        try:
            settings = StackSettings(prepared(settings, experiment.hardware.devices), str(path), places)
        except ValueError as error:
            raise ConfigError(plain(str(error), 200), where=str(path)) from error
    refuse(spec, settings)
    experiment = add_model(spec, settings, path, experiment, unsettled)
    named = settings.get(spec.deepspeed or "", values.get(spec.deepspeed or ""))
    if named:
        return _under_deepspeed(spec, settings, named, path, experiment)
    full = settings.overridden(spec.add_defaults(settings))
    with blamed_on(settings.where()):
        sequence = _whole(field_of(spec, "sequence_length", full))
        hardware, layers = experiment.hardware, experiment.model.layers if experiment.model else None
        if experiment.model and (layers_of := hook(spec, "layers_of")):
            layers = layers_of(full, experiment.model)
        said_batch = experiment.workload.global_batch if spec.batch.asked else None
        asked = {spec.batch.whole.keys[0]: said_batch} if said_batch and spec.batch.whole else {}
        plan, notes = planned(spec, {**settings, **asked}, hardware.devices, unsettled, hardware.slices, layers)
        unplanned, notes = (notes, ()) if plan is None else ((), notes)
        whole = {*word_keys(spec.batch.whole or spec.batch.micro)}
        if spec.batch.whole and spec.batch.whole.said(settings) is None:
            whole |= {*word_keys(spec.batch.micro)}
        left = whole & unsettled - asked.keys()
        batch = None if left else global_batch_of(spec, {**settings, **asked}, plan, sequence, hardware.devices)
        open_ = frozenset(field for field, words in spec.workload.items() if unsettled & {*word_keys(*words)})
        workload = _workload(spec, full, batch, plan, experiment, settings.where(), open_)
        remarks = _notes(spec, full, sequence, plan, layers)
    experiment = _set_devices(spec, settings, plan, experiment)
    sizes = [word for word in (spec.batch.whole, spec.batch.micro) if word]
    asked = whole & unsettled or all(word.said(full) is None for word in sizes)
    open_batch = hook(spec, "open_batch")
    lacking = open_batch(full, plan) if open_batch else sizes[0].keys[:1] if asked else ()
    notes += (no_batch(lacking),) if batch is None and lacking else ()
    left = sorted(key for field in open_ for key in word_keys(*spec.workload[field]) if key in found)
    notes += (f"set by a variable whose value is not said: {', '.join(left)}; add as key=value",) if left else ()
    doubts = ((said, left) for said, left in spec.doubtful.items() if left in unsettled and said in settings)
    notes += tuple(f"{said} means another thing by version: add {left}=…" for said, left in doubts)
    sources = {"plan": path.name, "workload": path.name} | sources_of(spec, settings)
    read_as = tuple(f"{plain(key, 60)} is read as {name}" for key, name in elsewhere.items())
    notes = (*read_as, *unread(spec, settings, given), *notes)
    return experiment.knowing(
        *notes, *remarks, first=unplanned, plan=plan, workload=workload,
        hyperparameters=settings.harmless() | {STACK: spec.name}, provenance=sources,
    )  # fmt: skip


def sources_of(spec: Spec, settings: StackSettings) -> dict[str, str]:
    """Field of the workload and of the plan → the setting that says it, or whose default does."""
    full, axes, batch = spec.add_defaults(settings), spec.axes, spec.batch
    keys = {f"workload.{field}": key_of(spec, field, full) for field in spec.workload}
    keys |= {f"plan.ici.{axis}": word.key(full) for axis in AXES if (word := getattr(axes, axis))}
    recompute = [*word_keys(*spec.recompute), *spec.names.get("recomputation", ())]
    keys["plan.remat"] = next((key for key in recompute if key in settings), next(iter(recompute), None))
    keys["plan.microbatches"] = (batch.accumulation or batch.micro).key(full)
    keys |= own(full) if (own := hook(spec, "keys_of_plan")) else {}
    found = {path: origin(spec, settings, key) for path, key in keys.items() if key}
    sizes = (batch.whole,) if batch.whole and batch.whole.said(full) is not None else (batch.micro, batch.accumulation)
    parts = [origin(spec, settings, word.key(full)) for word in sizes if word and word.said(full) is not None]
    derived = "" if sizes[0] is batch.whole else "by the plan and "
    return found | ({"workload.global_batch": f"{derived}{' x '.join(parts)}"} if parts else {})


def origin(spec: Spec, settings: StackSettings, key: str) -> str:
    """Where a setting was said, or that its default counts."""
    if key not in settings:
        return f"default of {spec.framework}: {key}"
    return f"{settings.source(key)}{': the remaining devices' if str(settings[key]) in ('-1', *spec.axes.rest) else ''}"


def _under_deepspeed(spec: Spec, settings: StackSettings, named: Any, path: Path, experiment: Experiment) -> Experiment:
    """A run that DeepSpeed shards, with the numerics that the stack says."""
    full, (configuration, notes) = spec.add_defaults(settings), named_configuration(named, path)
    micro = settings.count(spec.batch.micro.key(full), 1)
    sizes = {zero.TENSOR: axis_degree(spec, full, "model"), zero.SEQUENCE: axis_degree(spec, full, "seq")}
    filled: dict[str, Any] = {key: size for key, size in sizes.items() if size != 1} | {
        zero.MICRO_BATCH: micro,
        zero.ACCUMULATION: settings.count(spec.batch.accumulation.key(full), 1) if spec.batch.accumulation else 1,
        RECOMPUTE: meaning(spec.recompute[0], full) == Remat.FULL.value,
    }
    read = read_table(registry.spec("deepspeed"), configuration | filled, path, (), experiment)
    left = {zero.MICRO_BATCH: AUTO} if configuration.get(zero.MICRO_BATCH) == AUTO else {}
    read = read.knowing(*notes, hyperparameters=left | settings.harmless() | {spec.batch.micro.key(full): micro})
    moved = [what for one in spec.offload if one.what == ("activations",) and moves(one, full) for what in one.what]
    if read.plan is not None and read.plan.remat is Remat.FULL and moved:
        read = read.knowing(plan=read.plan.model_copy(update={"offload": (*read.plan.offload, *moved)}))
    with blamed_on(settings.where()):
        said = _fields(spec, full)
    known = read.workload.model_dump(exclude_none=True)
    kept = ("weight_precision", "sync_each_batch")
    workload = Workload.model_validate(known | {key: value for key, value in said.items() if key not in kept})
    remarks = (*unread(spec, settings), *_notes(spec, full, None))
    return read.knowing(*remarks, workload=workload, provenance=sources_of(spec, settings))


def _set_devices(spec: Spec, settings: StackSettings, plan: Plan | None, experiment: Experiment) -> Experiment:
    """Where the degrees say all devices, the hardware that is said must have as many."""
    devices = experiment.hardware.devices
    if plan is None or devices == plan.devices:
        return experiment
    if devices is not None:
        degrees = [
            word.key(settings) for axis in ("replica", "model", "stage", "seq") if (word := getattr(spec.axes, axis))
        ]
        reason = f"{' x '.join(degrees)} is {plan.devices}, and the hardware has {devices} devices"
        hint = f"say hardware of {plan.devices} devices, or change a degree on the command line, such as {degrees[0]}=…"
        raise ConfigError(reason, where=settings.where(), hint=hint)
    return experiment.model_copy(update={"hardware": experiment.hardware.model_copy(update={"devices": plan.devices})})


def _workload(
    spec: Spec,
    settings: Mapping[str, object],
    batch: int | None,
    plan: Plan | None,
    experiment: Experiment,
    where: str,
    open_: frozenset[str],
) -> Workload:
    found = _fields(spec, settings)
    if plan_fields := hook(spec, "plan_fields"):
        found |= plan_fields(settings, plan, experiment.model, batch, spec.framework)
    found.setdefault("zero_stage", 3 if layout_of(spec, settings) != "replica" else 0)
    known = experiment.workload.model_dump(exclude_none=True)
    found = {field: value for field, value in found.items() if field not in open_}
    return validated(Workload, {"framework": spec.framework, **known, **found, "global_batch": batch}, where)


def _fields(spec: Spec, settings: Mapping[str, object]) -> dict[str, Any]:
    """Fields of the workload that the settings say, by the table and by the stack's own code."""
    workload = hook(spec, "workload")
    found = dict(spec.fields) | {field: field_of(spec, field, settings) for field in spec.workload}
    found |= workload(settings) if workload else {}
    if found.get("optimizer") is not None:
        found |= optimizer_fields(str(found["optimizer"]), settings)
    left = () if found.get("adapter_rank") else ("adapted", "frozen_precision")
    return {field: value for field, value in found.items() if value is not None and field not in left}


def _whole(value: Any) -> int | None:
    return digits(str(value)) or None


def _open(spec: Spec, settings: StackSettings, given: Mapping[str, str]) -> frozenset[str]:
    """Settings that the table reads and that only a run can tell; a model is known by the end of its path, and what is
    refused stays said."""
    named = {*spec.model.name.keys} if spec.model.name else set[str]()
    named |= {key for refusal in spec.refused for key in refusal.keys}
    open_ = {key for key in spec.words - named if has_substitution(str(settings.get(key, "")))}
    doubtful = {left for said, left in spec.doubtful.items() if settings.get(said) not in (None, settings.get(left))}
    return frozenset(open_ | (doubtful - given.keys()))


def _set_said_devices(
    spec: Spec, settings: StackSettings, unsettled: frozenset[str], experiment: Experiment
) -> Experiment:
    """The hardware of a table that says devices, and the machine of its cloud where that is known."""
    keys = [word.key(settings) for word in spec.devices]
    counts = [settings.get(key) for key in keys if key in settings]
    open_ = unsettled & {*keys} or not counts or any(_whole(count) is None for count in counts)
    devices = None if open_ else math.prod(_whole(count) or 1 for count in counts)
    each, nodes = (_whole(settings.get(key)) for key in spec.names.get("nodes", ("", "")))
    if each and nodes:
        experiment, devices = set_nodes(each, nodes, experiment), devices or each * nodes
    machine = str((spec.machine.said(settings) if spec.machine else None) or "").removeprefix("ml.")
    return set_devices(devices, experiment, machine if machine and find_instance(machine) else None)


def _notes(
    spec: Spec,
    settings: Mapping[str, object],
    sequence: int | None,
    plan: Plan | None = None,
    layers: int | None = None,
) -> tuple[str, ...]:
    of_plan = notes_on(settings, plan, layers) if (notes_on := hook(spec, "notes_on")) else ()
    facts = facts_of(plan, layout=layout_of(spec, settings)) if plan else {}
    return (*table_notes(spec, settings, sequence, facts), *of_plan)
