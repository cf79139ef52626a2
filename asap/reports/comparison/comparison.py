"""The comparison as a document, ``asap.comparison/1``."""

from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

from asap.core.errors import AsapError
from asap.core.units import Quantity
from asap.evidence.effect import relative_to
from asap.history.changes import axis_changes, experiment_changes, other_changes
from asap.plans import Plan
from asap.prediction.predict_study import expect
from asap.profiles import Kpis, Profile
from asap.reports.comparison.operations import OperationChanges, compare_operations
from asap.study.changed import drop_step_time
from asap.study.study import Study

_KPIS = ("step_time_s", "duty_cycle", "communication", "idle", "input", "goodput")


class KpiChange(BaseModel):
    """A KPI of both runs: seconds for the step time, a fraction otherwise."""

    model_config = ConfigDict(frozen=True)

    name: str
    before: float | None
    after: float | None


class PredictedChange(BaseModel):
    """What was to be expected of the second plan from the first run, and what was measured: ratios of step times."""

    model_config = ConfigDict(frozen=True)

    predicted: Quantity
    measured: float | None
    inside: bool | None = Field(description="whether the measurement lies in the 90 % interval")


class RunComparison(BaseModel):
    """Two runs side by side."""

    model_config = ConfigDict(frozen=True, populate_by_name=True)

    schema_: Literal["asap.comparison/1"] = Field(default="asap.comparison/1", alias="schema")
    before: str
    after: str
    plan_before: Plan | None
    plan_after: Plan | None
    bottleneck_before: str
    bottleneck_after: str
    changes: tuple[str, ...] = Field(description="of plan, workload, model and environment, where both are known")
    kpis: tuple[KpiChange, ...]
    speedup: float | None = Field(description="step time before over after; above 1 is faster")
    operations: OperationChanges | None
    prediction: PredictedChange | None
    notes: tuple[str, ...] = Field(description="what limits the comparison")


def compare_studies(before: Study, after: Study) -> RunComparison:
    """Compare two runs as far as both are known."""
    old, new = before.plan or Plan(), after.plan or Plan()
    changes = [*axis_changes(old, new)] if before.plan and after.plan else []
    changes += other_changes(old, new, before.experiment.workload, after.experiment.workload)
    changes += experiment_changes(before.experiment, after.experiment)
    ours, theirs = _kpis(before), _kpis(after)
    speedup = ours.step_time_s / theirs.step_time_s if ours.step_time_s and theirs.step_time_s else None
    prediction, why_not = _predicted(before, after, speedup)
    operations, limits = _operations(before.profile, after.profile)
    return RunComparison(
        before=before.experiment.id,
        after=after.experiment.id,
        plan_before=before.plan,
        plan_after=after.plan,
        bottleneck_before=before.diagnosis.bottleneck.value,
        bottleneck_after=after.diagnosis.bottleneck.value,
        changes=tuple(changes),
        kpis=tuple(_changed(name, ours, theirs) for name in _KPIS if _known(name, ours, theirs)),
        speedup=speedup,
        operations=operations,
        prediction=prediction,
        notes=(*why_not, *limits),
    )


def _kpis(study: Study) -> Kpis:
    return study.profile.kpis if study.profile else Kpis()


def _known(name: str, ours: Kpis, theirs: Kpis) -> bool:
    return getattr(ours, name) is not None or getattr(theirs, name) is not None


def _changed(name: str, ours: Kpis, theirs: Kpis) -> KpiChange:
    label = name.removesuffix("_s").replace("_", " ")
    return KpiChange(name=label, before=getattr(ours, name), after=getattr(theirs, name))


def _operations(before: Profile | None, after: Profile | None) -> tuple[OperationChanges | None, list[str]]:
    if before is None or after is None or not before.operations or not after.operations:
        return None, ["Operations are compared only where both runs have a profile with operations."]
    timed = all(op.time_s is not None for op in (*before.operations, *after.operations))
    steps = before.extent == after.extent == "step"
    notes = (
        [] if steps and timed else ["Operations are compared by their share: not both profiles have times of a step."]
    )
    if before.stated or after.stated:
        notes.append("Of a stated profile only the leading operations are known: others seem new or gone.")
    return compare_operations(before.operations, after.operations, steps and timed), notes


def _predicted(before: Study, after: Study, speedup: float | None) -> tuple[PredictedChange | None, list[str]]:
    """What the first run let expect of the second's plan; of runs that differ in more, both by the model alone."""
    if before.plan is None or after.plan is None:
        return None, ["No prediction is compared: a plan is not known."]
    one, other, notes = before.experiment, after.experiment, list[str]()
    if one.workload.tokens != other.workload.tokens:
        return None, ["No prediction is compared: a step has another number of tokens, or it is not on record."]
    try:
        if differs := _beside_plan(before, after):
            notes = [f"The prediction is of both runs by the model alone: {', '.join(differs)} changed as well."]
            now, then = (
                expect(drop_step_time(each, each.experiment), [plan])[0]
                for each, plan in ((before, before.plan), (after, after.plan))
            )
            relative = relative_to(now, then, other.model)
        else:
            relative = expect(before, [after.plan])[0].relative_step_time
    except AsapError as error:
        return None, [f"No prediction is compared: {error.message}."]
    if relative is None:
        return None, ["No prediction is compared: the first run has no measured step."]
    measured = 1 / speedup if speedup else None
    inside = None
    if measured is not None and relative.low is not None and relative.high is not None:
        inside = relative.low <= measured <= relative.high
    return PredictedChange(predicted=relative, measured=measured, inside=inside), notes


def _beside_plan(before: Study, after: Study) -> list[str]:
    """Names of what differs beside the plan."""
    one, other = before.experiment, after.experiment
    fields = [name for name, value in one.workload if value != getattr(other.workload, name)]
    parts = {"model": one.model != other.model, "hardware": before.slice != after.slice}
    return [*(name for name, differs in parts.items() if differs), *(name.replace("_", " ") for name in fields)]
