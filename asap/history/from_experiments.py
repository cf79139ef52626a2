"""A record from two of the user's experiments: the baseline and the result of the change."""

from pydantic import ValidationError

from asap.core.errors import BadInputError, InsufficientEvidenceError
from asap.core.text import plain
from asap.core.units import Provenance, Quantity
from asap.diagnosis import Bottleneck
from asap.experiments import Experiment
from asap.history.changes import experiment_changes, other_changes
from asap.history.record import (
    ChangeKind,
    HistoryRecord,
    Model,
    Outcome,
    Source,
    measured_speedup,
    summary_of,
    title_of,
)
from asap.models import count_parameters
from asap.plans import Plan
from asap.profiles.profile import Bound

MESH_ALONE = 0.9
MORE_CHANGED = 0.6
"""Confidence that the mesh made the difference: a default, to be corrected in the record."""


def record_from_experiments(
    baseline: Experiment,
    result: Experiment,
    step_time_before: float | None,
    step_time_after: float | None,
    *,
    bottleneck: Bottleneck | None = None,
    bound: Bound | None = None,
    summary: str | None = None,
    profile_links: tuple[str, ...] = (),
) -> HistoryRecord:
    """What going from one experiment to the other did.

    Args:
        baseline: the run before.
        result: the run after.
        step_time_before: seconds; ``None`` if it ran out of memory.
        step_time_after: seconds; ``None`` if it ran out of memory.
        bottleneck: of the baseline, as diagnosed.
        bound: what most of the baseline's time was bound by.
        summary: in the user's words; written from the facts if it is missing.
        profile_links: of the profiles; by default those of the experiments.

    Raises:
        InsufficientEvidenceError: a plan is unknown, or neither run has a step time.
        BadInputError: nothing changed, or the runs cannot be compared.
    """
    before, after = _plan(baseline), _plan(result)
    where = f"{baseline.id}, {result.id}"
    if step_time_before is None and step_time_after is None:
        raise InsufficientEvidenceError("neither run has a step time", where=where)
    measured = _measured(baseline, step_time_before, result), _measured(result, step_time_after, baseline)
    others = (
        *other_changes(before, after, baseline.workload, result.workload),
        *experiment_changes(baseline, result),
    )
    try:
        speedup = measured_speedup(*measured)
        outcome = _outcome(measured[1], speedup)
        subject = _subject(baseline)
        return HistoryRecord(
            id=f"{baseline.id}--{result.id}"[:128],
            title=title_of(subject, before, after, others, outcome, measured[0] is not None),
            model=_model(baseline),
            hardware=baseline.hardware,
            workload=baseline.workload,
            before=before,
            after=after,
            bottleneck=bottleneck,
            bound=bound,
            other_changes=others,
            measure="step time" if _same_tokens(baseline, result) else "tokens per second",
            measured_before=measured[0],
            measured_after=measured[1],
            outcome=outcome,
            speedup=speedup,
            summary=summary or summary_of(subject, before, after, outcome, measured, speedup, others),
            profile_links=profile_links or tuple(filter(None, (baseline.profile_path, result.profile_path))),
            source=Source(text=f"experiments {baseline.id} and {result.id}", rows=(baseline.id, result.id)),
            confidence=MORE_CHANGED if others else MESH_ALONE,
        )
    except ValidationError as error:
        raise BadInputError(plain(error.errors()[0]["msg"].removeprefix("Value error, "), 200), where=where) from error
    except ValueError as error:
        raise BadInputError(str(error), where=where) from error


def record_of_change(
    run: Experiment, change: str, kind: ChangeKind, seconds: tuple[float, float], name: str
) -> HistoryRecord:
    """What one change beside the plan did to a run: step times without and with it, in seconds."""
    measured = tuple(
        Quantity(value=value, unit="s", provenance=Provenance.MEASURED, source=f"session {name}") for value in seconds
    )
    speedup, plan, subject = seconds[0] / seconds[1], _plan(run), _subject(run)
    outcome = _outcome(measured[1], speedup)
    return HistoryRecord(
        id=f"{run.id}--{name}"[:128],
        title=title_of(subject, plan, plan, (change,), outcome, True),
        model=_model(run),
        hardware=run.hardware,
        workload=run.workload,
        before=plan,
        other_changes=(plain(change, 300),),
        kind=kind,
        measured_before=measured[0],
        measured_after=measured[1],
        outcome=outcome,
        speedup=speedup,
        summary=summary_of(subject, plan, plan, outcome, (measured[0], measured[1]), speedup, (change,)),
        source=Source(text=f"session {name}", rows=(run.id,)),
        confidence=MESH_ALONE,
    )


def _plan(experiment: Experiment) -> Plan:
    if experiment.plan is None:
        raise InsufficientEvidenceError("has no plan", where=experiment.id, hint="add the mesh to the experiment")
    return experiment.plan


def _outcome(after: Quantity | None, speedup: float | None) -> Outcome:
    if after is None:
        return Outcome.OUT_OF_MEMORY
    return Outcome.SLOWER if speedup is not None and speedup <= 1 else Outcome.IMPROVED


def _measured(experiment: Experiment, step_time: float | None, other: Experiment) -> Quantity | None:
    """The step time, or tokens per second where the two runs have steps of different size."""
    if step_time is None:
        return None
    tokens = experiment.workload.tokens
    rate = None if _same_tokens(experiment, other) or tokens is None else tokens / step_time
    value, unit = (step_time, "s") if rate is None else (rate, "tokens/s")
    return Quantity(value=value, unit=unit, provenance=Provenance.MEASURED, source=f"experiment {experiment.id}")


def _same_tokens(one: Experiment, other: Experiment) -> bool:
    counts = {one.workload.tokens, other.workload.tokens} - {None}
    return len(counts) < 2


def _model(experiment: Experiment) -> Model:
    architecture = experiment.model
    if architecture is None:
        return Model()
    parameters = None if architecture.missing() else float(count_parameters(architecture).total)
    return Model(name=architecture.name, parameters=parameters, architecture=architecture)


def _subject(experiment: Experiment) -> str:
    model = (experiment.model.name if experiment.model else None) or "a model"
    hardware = experiment.hardware.name or experiment.hardware.chip or "unknown hardware"
    return plain(f"{model} on {hardware}", 80)
