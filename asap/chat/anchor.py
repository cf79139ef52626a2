"""Measurements teach: a step time that was measured, or follows from what was, anchors every prediction."""

from collections.abc import Sequence

from asap.chat.evidence import Claim, StatedFact, stated
from asap.core.errors import AsapError
from asap.core.provenance import Quantity
from asap.experiments.measured_step import MeasuredStep
from asap.prediction.prediction import Prediction
from asap.study.measurements import stated_profile
from asap.study.study import Study, study_of


def anchored(study: Study, evidence: Sequence[StatedFact]) -> Study:
    """The study with the measured step of what runs now; the same study where none was stated."""
    fact = next(
        (f for f in reversed(evidence) if f.claim is Claim.STEP_TIME and f.plan == study.plan and f.value), None
    )
    if fact is None or fact.value is None:
        return study
    profile = study.profile
    if profile is None:
        measured = MeasuredStep(seconds=fact.value, source="the engineer")
        return study_of(study.experiment, stated_profile(measured))
    kpis = profile.kpis.model_copy(update={"step_time_s": fact.value})
    return study_of(study.experiment, profile.model_copy(update={"kpis": kpis}))


def modelled_now(study: Study) -> Prediction | None:
    """What the model alone expects of what runs now, without any measurement; ``None`` without the architecture."""
    from asap.prediction import predict

    experiment = study.experiment
    if study.plan is None or study.slice is None or experiment.model is None or experiment.model.missing():
        return None
    if not experiment.workload.tokens:
        return None
    try:
        return predict(study.plan, experiment.model, experiment.workload, study.slice)[0]
    except AsapError:
        return None


def implied_step(study: Study, fact: StatedFact) -> Quantity | None:
    """The step time that follows from a stated throughput or MFU; ``None`` where it does not."""
    tokens = study.experiment.workload.tokens
    if fact.claim is Claim.THROUGHPUT and tokens and fact.value:
        return stated(fact, tokens / fact.value, "s")
    if fact.claim is Claim.MFU and fact.value:
        now = modelled_now(study)
        if now is not None and now.mfu is not None and now.step_time is not None:
            return stated(fact, now.step_time.value * now.mfu.value / fact.value, "s")
    return None
