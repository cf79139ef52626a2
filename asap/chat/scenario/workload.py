"""A run with another batch, sequence, precision, optimizer, or model."""

from pydantic import ValidationError

from asap.chat.understanding.quantities.changes import Change
from asap.chat.understanding.quantities.local_batch import local_batches
from asap.chat.understanding.quantities.model_names import model_of
from asap.chat.understanding.quantities.things import Thing, To
from asap.core.errors import InsufficientEvidenceError, PlanError
from asap.experiments import Experiment
from asap.plans import Plan
from asap.prediction.step_model.encoding import OPTIMIZERS
from asap.study.study import Study


def with_workload(study: Study, experiment: Experiment, change: Change, plan: Plan, changes: list[str]) -> Experiment:
    """The record with another workload; ``changes`` gets what is said about it.

    Args:
        study: the run as it is.
        experiment: the record, with other changes applied.
        change: what is to be different.
        plan: which divides the batch over data ranks.
        changes: phrases, one for each change.

    Raises:
        InsufficientEvidenceError: a factor has nothing on record to multiply.
    """
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
        if new == now:
            continue
        fields[field] = new
        changes.append(f"a {name} of {new}{f' instead of {now}' if now else ''}")
    if change.same_tokens and change.get("batch") is None and workload.tokens and "sequence_length" in fields:
        fields["global_batch"] = new = max(workload.tokens // int(str(fields["sequence_length"])), 1)
        changes.append(f"a global batch of {new} instead of {workload.global_batch}, for as many tokens")
    if (each := change.get("per_device_batch")) and (devices := _devices(study, experiment)):
        fields["global_batch"] = new = _global_batch(each, workload.global_batch, devices, study)
        changes.append(f"a global batch of {new} ({new / devices:g} for each of {devices} devices)")
    before, after = study.slice.devices if study.slice else None, experiment.hardware.devices
    if change.same_local_batch and not fields and workload.global_batch and before and after:
        fields["global_batch"] = new = max(workload.global_batch * after // before, 1)
        changes.append(f"a global batch of {new} instead of {workload.global_batch}, as much for each chip")
    if each := change.get("local_batch"):
        ranks = local_batches(study, plan)
        size = each.of(workload.global_batch // ranks if workload.global_batch else None) or 1
        fields["global_batch"] = new = size * ranks
        changes.append(f"a global batch of {new} ({size} for each of {ranks})")
    if change.optimizer is not None and change.optimizer not in OPTIMIZERS:
        reason = f"what {change.optimizer} keeps for each parameter is not on record"
        hint = f"known are {', '.join(OPTIMIZERS)}; asap analyze --allow second_moment tries narrower moments of Adam"
        raise InsufficientEvidenceError(reason, where=experiment.id, hint=hint)
    wanted = {
        "precision": change.precision, "optimizer": change.optimizer, "capacity_factor": change.capacity_factor
    }  # fmt: skip
    for field, value in wanted.items():
        now = getattr(workload, field)
        if value not in (None, now):
            fields[field] = value
            changes.append(f"{field.replace('_', ' ')} {value} instead of {now or 'what is on record (none)'}")
    return experiment.model_copy(update={"workload": workload.model_copy(update=fields)}) if fields else experiment


def _global_batch(each: To, now: int | None, devices: int, study: Study) -> int:
    """The batch of all devices, of which each has so many sequences, or so many times as many as now.

    Raises:
        InsufficientEvidenceError: a factor has nothing on record to multiply.
    """
    if not each.factor:
        return (each.of(None) or 1) * devices
    if now is None or study.slice is None:
        raise InsufficientEvidenceError(
            "the global batch is not on record, so it cannot be scaled",
            where=study.experiment.id,
            hint='state it: "Our batch is 256"',
        )
    return max(round(now / study.slice.devices * each.value * devices), 1)


def with_model(experiment: Experiment, change: Change, changes: list[str]) -> Experiment:
    """The record with another model; ``changes`` gets what is said about it.

    Raises:
        PlanError: a dense model is to choose experts, or experts are named and not how many a token goes to.
        InsufficientEvidenceError: the model that is named is not known.
    """
    if change.model is not None:
        experiment = _of_model(experiment, change.model, changes)
    fields: dict[str, object] = {}
    things: tuple[Thing, ...] = ("layers", "experts", "experts_per_token", "d_model", "kv_heads", "vocab")
    for thing in things:
        if (to := change.get(thing)) is None:
            continue
        now = getattr(experiment.model, thing) if experiment.model else None
        if thing == "experts_per_token" and now == 0 and change.get("experts") is None:
            raise PlanError("a dense model has no experts to choose from", where=experiment.id)
        new = to.of(now)
        if new is None or experiment.model is None:
            changes.append(f"{thing.replace('_', ' ')} {to.value:g}")
            continue
        fields[thing] = new
        changes.append(f"{new} {thing.replace('_', ' ')} instead of {now}")
    if not fields or experiment.model is None:
        return experiment
    try:
        model = type(experiment.model).model_validate({**experiment.model.model_dump(), **fields, "name": None})
    except ValidationError as error:
        reason = str(error.errors()[0]["msg"]).removeprefix("Value error, ")
        raise PlanError(f'{reason}: say both, as in "8 experts, top 2"', where=experiment.id) from None
    return experiment.model_copy(update={"model": model})


def _of_model(experiment: Experiment, name: str, changes: list[str]) -> Experiment:
    found = model_of(name, experiment.model)
    if found is None:
        raise InsufficientEvidenceError(
            f"which model {name} is, is not known here: name one of the catalogue, as in llama3.1-70b, or analyse its"
            " configuration by itself",
            where=experiment.id,
            hint="asap analyze FILE --hardware NAME",
        )
    now = experiment.model.name if experiment.model is not None else None
    changes.append(f"{found.name} instead of {now or 'the model of the run'}")
    return experiment.model_copy(update={"model": found})


def _devices(study: Study, experiment: Experiment) -> int | None:
    return experiment.hardware.devices or (study.slice.devices if study.slice else None)
