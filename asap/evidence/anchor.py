"""Measurements teach: a step time that was measured, or follows from what was, anchors every prediction."""

import math
from collections.abc import Sequence

from asap.core.units import Provenance, Quantity
from asap.evidence.fact import Claim, StatedFact
from asap.evidence.readings import run_of
from asap.experiments.observed import MeasuredStep
from asap.prediction.prediction import Prediction
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


def apply_measured_step(study: Study, now: Prediction, evidence: Sequence[StatedFact] = ()) -> Prediction:
    """A prediction of what runs with its step as it was measured, where it is scaled to that."""
    predicted, measured = now.step_time, current_step_time(study, evidence)
    if predicted is None or measured is None or not math.isclose(predicted.value, measured.value, rel_tol=1e-6):
        return now
    return now.model_copy(update={"step_time": measured})


def stated(item: StatedFact, value: float, unit: str) -> Quantity:
    """A figure of the engineer, which has no interval."""
    said_by = f"the engineer: {item.words}"
    return Quantity(value=value, unit=unit, provenance=Provenance.STATED, source=said_by, low=value, high=value)


def anchored(study: Study, evidence: Sequence[StatedFact]) -> Study:
    """The study with the measured step of what runs now, or with what the measured step of another plan makes of it.

    The same study where no step was stated, or where one is on record and only another plan was measured.
    """
    steps = [fact for fact in evidence if fact.claim is Claim.STEP_TIME and fact.value]
    own = next((fact for fact in reversed(steps) if fact.plan == study.plan), None)
    profile = study.profile
    if own is None:
        known = profile is not None and profile.kpis.step_time_s is not None
        expected = None if known or not steps else _expected_now(study, steps[-1])
        return start_from(study, expected) if expected is not None and profile is None else study
    assert own.value is not None
    if profile is None:
        measured = MeasuredStep(seconds=own.value, source="the engineer")
        return study_of(study.experiment, stated_profile(measured))
    kpis = profile.kpis.model_copy(update={"step_time_s": own.value})
    return study_of(study.experiment, profile.model_copy(update={"kpis": kpis}))


def start_from(study: Study, expected: Prediction) -> Study:
    """The study of a run whose step follows from the measured one of another plan; the same one where it is predicted
    not to fit: a step time would stand for a run that did, and so for its HBM."""
    if expected.step_time is None or (expected.memory is not None and not expected.memory.fits):
        return study
    measured = MeasuredStep(seconds=expected.step_time.value, source=WORKED_OUT)
    return study_of(study.experiment, stated_profile(measured))


def _expected_now(study: Study, fact: StatedFact) -> Prediction | None:
    """What the model expects of what runs now, starting from the measured step of another plan."""
    from asap.prediction.from_architecture import Measured, predict

    run = run_of(study)
    if run is None or fact.plan is None or fact.value is None:
        return None
    return predict(run.plan, run.model, run.workload, run.hardware, baseline=Measured(fact.plan, fact.value))[0]
