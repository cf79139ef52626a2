"""Predictions of HBM after what came of plans of the run: what ran, what died, and peaks that were read."""

from collections.abc import Sequence

from asap.core.units import Provenance, Quantity
from asap.prediction.from_architecture import predict
from asap.prediction.prediction import FIT_CONFIDENCE, MemoryPrediction, Prediction
from asap.prediction.step_model.groups import allocator_class
from asap.prediction.uncertainty.calibration import load_calibration
from asap.prediction.uncertainty.memory_belief import MemoryBelief, Seen, believed
from asap.study.study import MemoryOutcome, Study, outcome_of_log

MOVED = "moved by what came of other plans"


def outcomes_of(study: Study) -> tuple[MemoryOutcome, ...]:
    """All that is known: what was told, and the run itself where its step or its peak was measured."""
    profile, plan = study.profile, study.plan
    if any(one.plan == plan for one in study.outcomes):
        return study.outcomes
    if (logged := outcome_of_log(study.experiment)) is not None:
        return (*study.outcomes, logged)
    if profile is None or plan is None:
        return study.outcomes
    own = MemoryOutcome(plan, True if profile.kpis.step_time_s else None, profile.peak_hbm_bytes, profile.source)
    return study.outcomes if own.fitted is None and own.peak_bytes is None else (*study.outcomes, own)


def memory_belief(study: Study) -> MemoryBelief | None:
    """What is believed of plans that nothing came of; None where nothing is known, or nothing can be predicted."""
    outcomes, hardware = outcomes_of(study), study.slice
    if not outcomes or hardware is None:
        return None
    kind = allocator_class(study.experiment.workload.framework, hardware.chip.kind)
    overhead = load_calibration().full.overhead(kind)
    found = predict([one.plan for one in outcomes], study.experiment.model, study.experiment.workload, hardware)
    seen = [
        Seen(one.memory.total.value, outcome.fitted, outcome.peak_bytes)
        for one, outcome in zip(found, outcomes, strict=True)
        if one.memory is not None
    ]
    return believed(overhead, hardware.chip.device_capacity, seen)


def with_outcomes(study: Study, predictions: Sequence[Prediction]) -> list[Prediction]:
    """The predictions with their HBM as it is believed, or known, after the outcomes."""
    belief = memory_belief(study)
    if belief is None:
        return list(predictions)
    known = {one.plan: one for one in outcomes_of(study)}
    return [_revised(one, known.get(one.plan), belief) for one in predictions]


def _revised(prediction: Prediction, outcome: MemoryOutcome | None, belief: MemoryBelief) -> Prediction:
    memory = prediction.memory
    if memory is None:
        return prediction
    if outcome is not None:
        return prediction.model_copy(update={"memory": _known(memory, outcome, belief)})
    odds = float(belief.probability_fits(memory.total.value))
    factor, width = belief.factor, belief.narrowing
    total = _moved(memory.total, factor, width)
    parts = tuple(part.model_copy(update={"size_bytes": part.size_bytes * factor}) for part in memory.parts)
    update = {"total": total, "parts": parts, "probability_fits": odds}
    update["fits"] = odds >= FIT_CONFIDENCE and memory.fits_host
    return prediction.model_copy(update={"memory": memory.model_copy(update=update)})


def _known(memory: MemoryPrediction, outcome: MemoryOutcome, belief: MemoryBelief) -> MemoryPrediction:
    """What is known of the plan itself: its peak, or that what it holds is within the HBM, since it ran, or is not."""
    update: dict[str, object] = {}
    if outcome.fitted is not None and outcome.peak_bytes is None:
        bound = min if outcome.fitted else max
        factor = bound(belief.factor, memory.capacity_bytes / memory.total.value)
        update["total"] = _moved(memory.total, factor, belief.narrowing)
        update["parts"] = tuple(p.model_copy(update={"size_bytes": p.size_bytes * factor}) for p in memory.parts)
    if outcome.peak_bytes is not None:
        factor = outcome.peak_bytes / memory.total.value
        update["total"] = Quantity(
            value=outcome.peak_bytes, unit="bytes", provenance=Provenance.MEASURED, source=outcome.source
        )
        update["parts"] = tuple(p.model_copy(update={"size_bytes": p.size_bytes * factor}) for p in memory.parts)
    if outcome.fitted is not None or outcome.peak_bytes is not None:
        ran = outcome.fitted if outcome.fitted is not None else (outcome.peak_bytes or 0) <= memory.capacity_bytes
        update |= {"fits": ran, "probability_fits": None if ran else 0.0}
    return memory.model_copy(update=update)


def _moved(total: Quantity, factor: float, width: float) -> Quantity:
    ends = {
        name: total.value * factor * (end / total.value) ** width
        for name, end in (("low", total.low), ("high", total.high))
        if end
    }
    return total.model_copy(update={"value": total.value * factor, "source": f"{total.source}; {MOVED}", **ends})
