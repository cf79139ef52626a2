"""Predictions of HBM after what came of plans of the run: what ran, what died, and peaks that were read."""

from collections.abc import Callable, Sequence

from asap.core.units import Provenance, Quantity
from asap.prediction.from_architecture import predict
from asap.prediction.prediction import FIT_CONFIDENCE, STATES, MemoryPrediction, Prediction
from asap.prediction.step_model.groups import allocator_class
from asap.prediction.uncertainty.calibration import load_calibration
from asap.prediction.uncertainty.memory_belief import MemoryBelief, Seen, believed
from asap.prediction.uncertainty.step_interval import half_width
from asap.study.study import MemoryOutcome, Study, outcome_of_log

FITS_AS_IT_RAN = "It needs no more HBM than the plan that ran, as far as the model can compare them."
MOVED = "moved by what came of other plans"
SURPRISING = 0.9
"""Likelihood of the other outcome that is beyond the model's scatter. Judgement: which outcomes are surprises."""


def outcomes_of(study: Study) -> tuple[MemoryOutcome, ...]:
    """All that is known: what was told, and the run itself where its step or its peak was measured."""
    profile, plan = study.profile, study.plan
    if any(one.plan == plan for one in study.outcomes):
        return study.outcomes
    if (logged := outcome_of_log(study.experiment)) is not None:
        return (*study.outcomes, logged)
    if profile is None or plan is None or not (profile.kpis.step_time_s or profile.peak_hbm_bytes):
        return study.outcomes
    ran = True if profile.kpis.step_time_s else None
    return (*study.outcomes, MemoryOutcome(plan, ran, profile.peak_hbm_bytes, profile.source))


def is_unexplained(outcome: MemoryOutcome, modelled: MemoryPrediction) -> bool:
    """Whether a plan died that is all but sure to fit, or where something that is not stated decides it, or ran that is
    all but sure not to: it is likelier not as on record, which moves odds of other plans and no figure. A peak, and a
    compiler, say how much the plan holds."""
    told = outcome.fitted is not None and outcome.peak_bytes is None and outcome.provenance is Provenance.MEASURED
    odds = modelled.probability_fits if told else None
    open_still = bool(modelled.unsaid) and not outcome.fitted
    return odds is not None and (open_still or (1 - odds if outcome.fitted else odds) >= SURPRISING)


def memory_belief(study: Study) -> MemoryBelief | None:
    """What is believed of plans that nothing came of; None where nothing is known, or nothing can be predicted."""
    outcomes, hardware = outcomes_of(study), study.slice
    if not outcomes or hardware is None:
        return None
    model, now = study.experiment.model, study.experiment.workload
    overhead = load_calibration().full.overhead(allocator_class(now.framework, hardware.chip.kind))
    found = [predict([one.plan], model, one.workload or now, hardware)[0] for one in outcomes]
    seen = [
        Seen(one.memory.total.value, outcome.fitted, outcome.peak_bytes, not is_unexplained(outcome, one.memory))
        for one, outcome in zip(found, outcomes, strict=True)
        if one.memory is not None
    ]
    widest = max((one.memory.total for one in found if one.memory), key=half_width)
    ends = {name: getattr(widest, name) / widest.value for name in ("low", "high") if overhead.high > overhead.low}
    return believed(overhead.model_copy(update=ends), hardware.chip.device_capacity, seen)


def apply_outcomes(study: Study, predictions: Sequence[Prediction]) -> list[Prediction]:
    """The predictions with their HBM as it is believed, or known, after the outcomes."""
    belief, known = memory_belief(study), {one.plan: one for one in outcomes_of(study) if one.workload is None}
    return [_revised(one, known.get(one.plan), belief) for one in predictions]


def _revised(prediction: Prediction, outcome: MemoryOutcome | None, belief: MemoryBelief | None) -> Prediction:
    memory = prediction.memory
    if memory is not None and outcome is not None:
        return prediction.model_copy(update={"memory": _known(memory, outcome, belief)})
    if memory is None or belief is None:
        return prediction
    odds = float(belief.probability_fits(memory.total.value))
    update: dict[str, object] = {"probability_fits": odds, "fits": odds >= FIT_CONFIDENCE and memory.fits_host}
    total = _believed(memory, belief.of_explained)
    return prediction.model_copy(update={"memory": _holding(memory, total, **update)})


def _known(memory: MemoryPrediction, outcome: MemoryOutcome, belief: MemoryBelief | None) -> MemoryPrediction:
    """What is known of the plan itself: its peak, or that it is within the HBM or above, where that is explained."""
    total, capacity = memory.total, memory.capacity_bytes
    if outcome.peak_bytes is not None:
        total = Quantity(value=outcome.peak_bytes, unit="bytes", provenance=outcome.provenance, source=outcome.source)
        total = within(total, capacity) if outcome.fitted else total
    elif not is_unexplained(outcome, memory):
        found = _believed(memory, belief.of_explained if belief else None)
        total = within(found, capacity, min if outcome.fitted else max)
    ran = outcome.fitted if outcome.fitted is not None else (outcome.peak_bytes or 0) <= capacity
    return _holding(memory, total, fits=ran, probability_fits=None if ran else 0.0, unsaid="")


def fits_if_smaller(ran: Prediction, peak: float | None, modelled: Prediction, other: Prediction) -> Prediction:
    """A plan that needs no more HBM than one that ran, as modelled, fits, and holds no more than that one's peak."""
    known, before, memory = ran.memory, modelled.memory, other.memory
    if known is None or before is None or memory is None or before.total.value > known.total.value:
        return other
    if memory.probability_fits == 0.0 or not memory.fits_host or (memory.fits and memory.probability_fits is None):
        return other
    notes = other.notes if before.fits else (*other.notes, FITS_AS_IT_RAN)
    total = within(memory.total, min(memory.capacity_bytes, peak or memory.capacity_bytes))
    fitting = _holding(memory, total, fits=True, probability_fits=None, unsaid="")
    return other.model_copy(update={"memory": fitting, "notes": notes})


def within(total: Quantity, capacity: float, bound: Callable[[float, float], float] = min) -> Quantity:
    """A need for HBM with its interval, which the capacity bounds."""
    return total.with_ends(lambda end: bound(end, capacity))


def _believed(memory: MemoryPrediction, belief: MemoryBelief | None) -> Quantity:
    """What a plan needs at the required confidence, with its 90 % interval."""
    total = memory.total
    if belief is None:
        return total
    low, value, high = (total.value * belief.scale(odds) for odds in (0.05, FIT_CONFIDENCE, 0.95))
    ends = {"low": low, "high": high} if total.low is not None else {}
    return total.model_copy(update={"value": value, "source": f"{total.source}; {MOVED}", **ends})


def _holding(memory: MemoryPrediction, total: Quantity, **known: object) -> MemoryPrediction:
    """The prediction with another total. What the states of the model take is arithmetic: the other parts make up the
    difference, all parts where they cannot."""
    states = sum(part.size_bytes for part in memory.parts if part.name in STATES)
    others = sum(part.size_bytes for part in memory.parts) - states
    left, of_states = (total.value - states) / others if others else 0.0, 1.0
    if left <= 0:
        left = of_states = total.value / memory.total.value
    parts = tuple(
        part.model_copy(update={"size_bytes": part.size_bytes * (of_states if part.name in STATES else left)})
        for part in memory.parts
    )
    return memory.model_copy(update={"total": total, "parts": parts, **known})
