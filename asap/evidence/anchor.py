"""Measurements teach: a step time that was measured, or follows from what was, anchors every prediction."""

from collections.abc import Sequence

from asap.core.units import Provenance, Quantity
from asap.evidence.fact import Claim, StatedFact
from asap.evidence.readings import predicted, run_of
from asap.experiments.observed import MeasuredStep
from asap.study.measurements import stated_profile
from asap.study.study import Study, study_of

WORKED_OUT = "worked out from the measured step of another plan"
"""Source of a step time of what runs now that nobody measured: predictions start from it, and no answer quotes it."""


def current_step_time(study: Study, evidence: Sequence[StatedFact] = ()) -> Quantity | None:
    """Step time of the plan that runs now: stated, else measured by the profile."""
    for item in reversed(evidence):
        if item.claim is Claim.STEP_TIME and item.plan == study.plan and item.value:
            return stated(item, item.value, "s")
    profile = study.profile
    if profile is None or profile.kpis.step_time_s is None or profile.source == WORKED_OUT:
        return None
    return Quantity(value=profile.kpis.step_time_s, unit="s", provenance=profile.provenance, source=profile.source)


def stated(item: StatedFact, value: float, unit: str) -> Quantity:
    """A figure of the engineer, which has no interval."""
    return Quantity(
        value=value,
        unit=unit,
        provenance=Provenance.STATED,
        source=f"the engineer: {item.words}",
        low=value,
        high=value,
    )


def anchored(study: Study, evidence: Sequence[StatedFact]) -> Study:
    """The study with the measured step of what runs now, or with what the measured step of another plan makes of it.

    The same study where no step was stated, or where one is on record and only another plan was measured.
    """
    steps = [fact for fact in evidence if fact.claim is Claim.STEP_TIME and fact.value]
    own = next((fact for fact in reversed(steps) if fact.plan == study.plan), None)
    profile = study.profile
    if own is None:
        known = profile is not None and profile.kpis.step_time_s is not None
        worked_out = None if known or not steps else _worked_out(study, steps[-1])
        measured = MeasuredStep(seconds=worked_out, source=WORKED_OUT) if worked_out else None
        return study_of(study.experiment, stated_profile(measured)) if measured and profile is None else study
    assert own.value is not None
    if profile is None:
        measured = MeasuredStep(seconds=own.value, source="the engineer")
        return study_of(study.experiment, stated_profile(measured))
    kpis = profile.kpis.model_copy(update={"step_time_s": own.value})
    return study_of(study.experiment, profile.model_copy(update={"kpis": kpis}))


def _worked_out(study: Study, fact: StatedFact) -> float | None:
    """Seconds that the model expects of what runs now, starting from the measured step of another plan.

    ``None`` where what runs is predicted not to fit: a step time would stand for a run that did, and so for its HBM.
    """
    from asap.prediction.from_architecture import Measured, predict

    run = run_of(study)
    modelled = predicted(run) if run is not None else None
    if run is None or modelled is None or fact.plan is None or fact.value is None:
        return None
    if modelled.memory and not modelled.memory.fits:
        return None
    (now,) = predict(run.plan, run.model, run.workload, run.hardware, baseline=Measured(fact.plan, fact.value))
    return now.step_time.value if now.step_time else None
