"""Measurements teach: a step time that was measured, or follows from what was, anchors every prediction."""

import math
from collections.abc import Sequence

from asap.core.units import Provenance, Quantity, format_seconds
from asap.evidence.fact import Claim, StatedFact
from asap.evidence.readings import predicted, run_of
from asap.experiments.observed import MeasuredStep
from asap.hardware import Slice
from asap.prediction.build_prediction import NARROWS, OR_MEASURED
from asap.prediction.predict_study import anchoring_step
from asap.prediction.prediction import Prediction
from asap.prediction.step_model.step_parts import change_between
from asap.prediction.uncertainty.calibration import load_calibration
from asap.prediction.uncertainty.step_interval import half_width
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
    from asap.prediction import Measured, predict

    run = run_of(study)
    modelled = predicted(run) if run is not None else None
    if run is None or modelled is None or fact.plan is None or fact.value is None:
        return None
    if modelled.memory and not modelled.memory.fits:
        return None
    (now,) = predict(run.plan, run.model, run.workload, run.hardware, baseline=Measured(fact.plan, fact.value))
    return now.step_time.value if now.step_time else None


def carried_over(study: Study, now: Prediction, then: Prediction, hardware: Slice | None) -> Prediction:
    """What is expected of another batch, sequence, hardware or precision, from the measured step of what runs.

    The residual ln(measured / modelled) carries over as from plan to plan: the less, the more of a token's step
    changes. On other hardware the interval is no narrower than the model's alone. Unchanged where no prediction starts
    from the measured step.

    Args:
        study: of what runs.
        now: of what runs, by the model alone.
        then: of the other run, by the model alone.
        hardware: of the other run.
    """
    seconds, expected, other = anchoring_step(study), now.step_time, then.step_time
    if not seconds or expected is None or other is None or not (now.parts and then.parts):
        return then
    fit, model = load_calibration().full, study.experiment.model
    parts, others = _of_a_token(now), _of_a_token(then)
    names = {**parts, **others}
    moved = change_between([parts.get(name, 0.0) for name in names], [others.get(name, 0.0) for name in names])
    missed = math.log(seconds / expected.value)
    factor = math.exp(fit.residual_transfer.expected(missed, moved))
    width = fit.anchored_widths.of(model is not None and model.is_moe).at(float(moved))
    width = width if hardware == study.slice else max(width, half_width(other))
    source = "analytic step model, anchored to the measured step of what runs"

    def scaled(quantity: Quantity | None, by: float) -> Quantity | None:
        if quantity is None:
            return None
        value = quantity.value * by
        ends = {"low": value * math.exp(-width), "high": value * math.exp(width)}
        return quantity.model_copy(update={"value": value, "source": source, **ends})

    said = (
        f"It starts from the measured step, {format_seconds(seconds)}, where the model alone expects"
        f" {format_seconds(expected.value)}; by the model alone this would be {format_seconds(other.value)}."
    )
    asked = [note for note in then.notes if NARROWS not in note and OR_MEASURED not in note]
    longer = [{"busy_s": one.busy_s * factor, "exposed_s": one.exposed_s * factor} for one in then.parts]
    return then.model_copy(
        update={
            "step_time": scaled(other, factor), "mfu": scaled(then.mfu, 1 / factor), "notes": (said, *asked),
            "tokens_per_second": scaled(then.tokens_per_second, 1 / factor),
            "parts": tuple(one.model_copy(update=by) for one, by in zip(then.parts, longer, strict=True)),
        }
    )  # fmt: skip


def _of_a_token(found: Prediction) -> dict[tuple[str, str | None], float]:
    """Device-seconds of each part for a token: what does not change with the size of the job or of its batch."""
    tokens = (
        found.tokens_per_second.value * found.step_time.value if found.tokens_per_second and found.step_time else 1.0
    )
    return {(one.name, one.axis): one.exposed_s * found.plan.devices / tokens for one in found.parts}
