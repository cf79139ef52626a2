"""A run with a change applied: another batch, sequence, slice, model, precision, optimizer, or settings of its plan."""

from dataclasses import dataclass

from asap.chat.scenario.completeness import is_complete, missing
from asap.chat.scenario.hardware import with_hardware, with_stated_network
from asap.chat.scenario.micro_batch import with_batch_of_micro_batch
from asap.chat.scenario.workload import with_model, with_workload
from asap.chat.understanding.quantities.changes import Change, plan_settings
from asap.core.errors import InsufficientEvidenceError
from asap.levers.state_precision import LEVERS, STATE_SETTINGS
from asap.plans import Plan
from asap.plans.launchers import TITLES, Stack, stack_of
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
    change = with_batch_of_micro_batch(change, before, experiment.workload.global_batch, notes)
    experiment, stretched = with_hardware(study, experiment, change, before, changes, notes)
    experiment = with_stated_network(study, experiment, change, changes)
    experiment = with_workload(study, experiment, change, stretched, changes)
    experiment = with_model(experiment, change, changes)
    settings_only = experiment == study.experiment
    change, unsaid = sayable(change, stack_of(experiment.workload.framework))
    stretched = _accumulating(study, change, before, stretched, experiment.workload.global_batch)
    after = plan_settings(change, stretched, experiment.workload.global_batch)
    if after != stretched:
        changes.append(f"{_settings(stretched, after)}{unsaid}")
    if settings_only:
        return Scenario(study, after, before, tuple(changes), tuple(notes), settings_only=True)
    return Scenario(without_step_time(study, experiment), after, before, tuple(changes), tuple(notes), False)


def _accumulating(study: Study, change: Change, before: Plan, plan: Plan, batch: int | None) -> Plan:
    """The plan with another global batch: stacks that set the size of a micro-batch keep it, and run more of them."""
    on_record = study.experiment.workload.global_batch
    follows = change.get("batch") is not None or change.same_local_batch
    if not follows or not study.keeps_micro_batch or not (batch and on_record and before.microbatches):
        return plan
    now = study.plan
    size = on_record / (now.batch_shards * (now.microbatches or 1)) if now is not None else 0.0
    if batch == size * plan.batch_shards * before.microbatches:
        return plan.model_copy(update={"microbatches": before.microbatches})
    count, rest = divmod(before.microbatches * batch * before.batch_shards, on_record * plan.batch_shards)
    return plan if rest or not count else plan.model_copy(update={"microbatches": count})


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


def sayable(change: Change, stack: Stack) -> tuple[Change, str]:
    """A change with the settings of the training state that a stack has, and a remark on those that it lacks.

    Where it has none of them, all stay: what they would bring is asked, not how to set them.
    """
    said_by = {lever.name: lever.said_by for lever in LEVERS}
    lacking = [name for name, _ in change.state if stack not in said_by[name]]
    if not lacking:
        return change, ""
    remark = f" ({TITLES[stack].split()[0]} has no setting for {' and '.join(lacking)})"
    kept = tuple(pair for pair in change.state if pair[0] not in lacking) or change.state
    return change.model_copy(update={"state": kept}), remark


def _settings(before: Plan, after: Plan) -> str:
    said = []
    if after.remat != before.remat:
        said.append(f"remat={after.remat.value if after.remat else 'unknown'}")
    if after.microbatches != before.microbatches:
        said.append(f"microbatches={after.microbatches}")
    if after.pipeline_repeats != before.pipeline_repeats:
        said.append(f"pipeline_repeats={after.pipeline_repeats}")
    if after.loss_chunks != before.loss_chunks:
        said.append(f"loss_chunks={after.loss_chunks}")
    if after.offload != before.offload:
        said.append(f"offload={'+'.join(after.offload)}" if after.offload else "nothing offloaded")
    state = ((name, getattr(after, name)) for name in STATE_SETTINGS if getattr(after, name) != getattr(before, name))
    said += [f"{name}={value}" for name, value in state]
    return " and ".join(said)
