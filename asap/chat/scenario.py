"""A run with a change applied: another batch, sequence, slice, model, precision, optimizer, or settings of its plan."""

from dataclasses import dataclass

from asap.chat.understanding.changes import Change, Thing, plan_settings
from asap.core.errors import InsufficientEvidenceError
from asap.experiments import Experiment
from asap.experiments.hardware import refer_to_hardware
from asap.hardware import Slice, default_topology
from asap.plans import Mesh, Plan
from asap.plans.validity import require_valid
from asap.prediction.predict_study import expect
from asap.prediction.prediction import Prediction
from asap.study.changed import without_step_time
from asap.study.study import Study


@dataclass(frozen=True)
class Scenario:
    """A changed run with one plan in it.

    Args:
        study: the changed run; its incumbent is what runs now, stretched where the hardware is another.
        plan: the plan that is asked about, in the changed run.
        before: the same plan in the run as it is; ``None`` where it has none there.
        changes: what changes, one phrase each: "a global batch of 512 instead of 256".
        notes: how hardware was read.
        settings_only: the run stays, only settings of the plan change.
    """

    study: Study
    plan: Plan
    before: Plan | None
    changes: tuple[str, ...]
    notes: tuple[str, ...]
    settings_only: bool


def scenario_of(study: Study, change: Change, plan: Plan | None = None) -> Scenario:
    """Apply a change.

    Args:
        study: the run as it is.
        change: what is to be different.
        plan: the plan to look at; by default what runs now.

    Raises:
        InsufficientEvidenceError: a factor has nothing on record to multiply, or no plan is known.
        NotFoundError, ConfigError: there is no such hardware.
    """
    before = plan or study.plan
    if before is None:
        raise InsufficientEvidenceError("the current plan is not known", where=study.experiment.id, hint="--plan PLAN")
    experiment, changes, notes = study.experiment, [], []
    experiment, stretched = _with_hardware(study, experiment, change, before, changes, notes)
    experiment = _with_workload(study, experiment, change, changes)
    experiment = _with_model(experiment, change, changes)
    settings_only = experiment == study.experiment
    after = plan_settings(change, stretched)
    if after != stretched:
        changes.append(_settings(stretched, after))
    if settings_only:
        return Scenario(study, after, before, tuple(changes), tuple(notes), settings_only=True)
    return Scenario(without_step_time(study, experiment), after, before, tuple(changes), tuple(notes), False)


def predict_scenario(scenario: Scenario) -> Prediction:
    """What the engine expects of it.

    Raises:
        InsufficientEvidenceError: that follows from an architecture which is not on record.
        PlanError: the plan cannot run in it.
    """
    study = scenario.study
    require_valid(scenario.plan, study.constraints)
    if not scenario.settings_only and not is_complete(study):
        raise InsufficientEvidenceError(
            f"what {' and '.join(scenario.changes)} would do follows from {missing(study)}, unknown here",
            where=study.experiment.id,
            hint="asap experiments add ID --config FILE --hardware NAME --profile PATH",
        )
    (found,) = expect(study, [scenario.plan])
    if scenario.settings_only and found.method == "profile_ratios":
        raise InsufficientEvidenceError(
            f"what {' and '.join(scenario.changes)} would do depends on the architecture, which is not on record",
            where=study.experiment.id,
            hint="asap experiments add ID --config FILE --hardware NAME --profile PATH",
        )
    return found


def is_complete(study: Study) -> bool:
    """Whether the step model can be used."""
    experiment = study.experiment
    known = experiment.model is not None and not experiment.model.missing()
    return known and bool(experiment.workload.tokens) and study.slice is not None


def missing(study: Study) -> str:
    """What the step model lacks."""
    model, workload = study.experiment.model, study.experiment.workload
    parts = ["the model's architecture"] if model is None else [f"the model's {name}" for name in model.missing()]
    parts += ["the global batch"] if workload.global_batch is None else []
    parts += ["the sequence length"] if workload.sequence_length is None else []
    parts += ["the hardware"] if study.slice is None else []
    return " and ".join(parts)


def _with_hardware(
    study: Study, experiment: Experiment, change: Change, plan: Plan, changes: list[str], notes: list[str]
) -> tuple[Experiment, Plan]:
    chips, slices = change.get("chips"), change.get("slices")
    if change.hardware is None and chips is None and slices is None:
        return experiment, plan
    if study.slice is None:
        raise InsufficientEvidenceError("the hardware is not on record", where=experiment.id, hint="--hardware NAME")
    now = study.slice
    name = change.hardware or now.chip.name
    sized = "-" in name
    count = None if sized else (chips.of(now.devices) if chips else now.devices)
    if slices is not None and change.hardware is None and chips is None:
        name, sized, count = experiment.hardware.name or now.chip.name, True, None
    number = slices.of(now.slices) if slices else None
    topology = now.topology if slices is not None and change.hardware is None and chips is None else None
    if change.hardware is None and count is not None and slices is None and (more := _slices_with(now, count)):
        name, sized, topology, number = experiment.hardware.name or now.chip.name, True, now.topology, more
    reference, said = refer_to_hardware(name, topology, number, None if sized else count)
    notes += said
    devices = reference.devices or count or now.devices
    shape = f" in {number} slices" if number and number > 1 else ""
    new, old = ("", "") if reference.chip == now.chip.name else (f"{reference.chip} ", f" {now.chip.name} chips")
    changes.append(f"{devices} {new}chips{shape} instead of {now.devices}{old}")
    stretched = _stretched(plan, now.devices, devices, number or 1)
    own = _stretched(experiment.plan, now.devices, devices, number or 1) if experiment.plan else stretched
    return experiment.model_copy(update={"hardware": reference, "plan": own}), stretched


def _slices_with(now: Slice, devices: int) -> int | None:
    """How many slices like those of now have so many devices, where no single slice has."""
    chips = devices * now.chips // now.devices
    if now.chip.torus is None or default_topology(now.chip, chips) is not None or chips % now.chips_per_slice:
        return None
    return chips // now.chips_per_slice


def _stretched(plan: Plan, before: int, after: int, slices: int) -> Plan:
    """A plan on another number of devices: slices replicate it, else its FSDP axis takes the difference."""
    if slices > 1 and plan.dcn.devices == 1 and after == before * slices:
        return plan.model_copy(update={"dcn": Mesh(replica=slices)})
    per_slice = after // slices
    rest = plan.ici.devices // plan.ici.data
    if per_slice % rest:
        raise InsufficientEvidenceError(
            f"{plan} cannot be stretched to {after} chips", where="plan", hint="name the plan to run there"
        )
    dcn = Mesh(replica=slices) if slices > 1 else Mesh()
    return plan.with_ici(data=per_slice // rest).model_copy(update={"dcn": dcn})


def _with_workload(study: Study, experiment: Experiment, change: Change, changes: list[str]) -> Experiment:
    fields: dict[str, object] = {}
    workload = experiment.workload
    pairs: tuple[tuple[Thing, str], ...] = (("batch", "global_batch"), ("sequence", "sequence_length"))
    for thing, field in pairs:
        to = change.get(thing)
        if to is None:
            continue
        now, name = getattr(workload, field), field.replace("_", " ")
        new = to.of(now)
        if new is None or new < 1:
            example = "Our batch is 256" if thing == "batch" else "Our sequence length is 8192"
            raise InsufficientEvidenceError(
                f"the {name} is not on record, so it cannot be scaled",
                where=experiment.id,
                hint=f'state it: "{example}"',
            )
        fields[field] = new
        changes.append(f"a {name} of {new}{f' instead of {now}' if now else ''}")
    if (each := change.get("per_device_batch")) and (devices := _devices(study, experiment)):
        new = (each.of(None) or 1) * devices
        fields["global_batch"] = new
        changes.append(f"a global batch of {new} ({each.value:g} for each of {devices} devices)")
    for field, value in (("precision", change.precision), ("optimizer", change.optimizer)):
        if value is not None:
            now = getattr(workload, field)
            fields[field] = value
            changes.append(f"{field} {value} instead of {now or 'what is on record (none)'}")
    return experiment.model_copy(update={"workload": workload.model_copy(update=fields)}) if fields else experiment


def _with_model(experiment: Experiment, change: Change, changes: list[str]) -> Experiment:
    fields: dict[str, object] = {}
    things: tuple[Thing, ...] = ("layers", "experts", "experts_per_token", "d_model")
    for thing in things:
        if (to := change.get(thing)) is None:
            continue
        now = getattr(experiment.model, thing) if experiment.model else None
        new = to.of(now)
        if new is None or experiment.model is None:
            changes.append(f"{thing.replace('_', ' ')} {to.value:g}")
            continue
        fields[thing] = new
        changes.append(f"{new} {thing.replace('_', ' ')} instead of {now}")
    if not fields or experiment.model is None:
        return experiment
    model = type(experiment.model).model_validate({**experiment.model.model_dump(), **fields, "name": None})
    return experiment.model_copy(update={"model": model})


def _devices(study: Study, experiment: Experiment) -> int | None:
    return experiment.hardware.devices or (study.slice.devices if study.slice else None)


def _settings(before: Plan, after: Plan) -> str:
    said = []
    if after.remat != before.remat:
        said.append(f"remat={after.remat.value if after.remat else 'unknown'}")
    if after.microbatches != before.microbatches:
        said.append(f"microbatches={after.microbatches}")
    return " and ".join(said)
