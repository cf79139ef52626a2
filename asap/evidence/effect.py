"""What facts change: the record of the run, and the predictions.

Only facts move a ranking: a plan that was run, or a figure of the run that was wrong or missing on record.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from asap.core.units import Provenance, Quantity, format_seconds
from asap.evidence.anchor import WORKED_OUT, current_step_time, stated
from asap.evidence.fact import EXCLUDING_CLAIMS, RUN_CLAIMS, Claim, StatedFact
from asap.evidence.step_belief import Result, believe, prior_of
from asap.experiments import Experiment
from asap.experiments.create import Statement, amend
from asap.hardware import Slice
from asap.models import Architecture
from asap.plans import Plan
from asap.prediction.build_prediction import NARROWS, OR_MEASURED, RATIO
from asap.prediction.predict_study import anchoring_step
from asap.prediction.prediction import Prediction
from asap.prediction.step_model.step_parts import change_between
from asap.prediction.uncertainty.calibration import load_calibration
from asap.prediction.uncertainty.step_interval import half_width
from asap.stacks.launchers import contract_of
from asap.study.study import MemoryOutcome, Study

SOURCE = "moved by what was measured"
_LEAST = 1e-9  # deviation that stands for none
_ALIKE = 0.02
"""Share of modelled HBM within which no plan is told from another. Judgement: which plans a death rules out."""


def learned(predictions: Sequence[Prediction], now: Plan, measured: Mapping[Plan, float]) -> list[Prediction]:
    """Predictions after what other plans measured.

    Args:
        predictions: before any of these measurements.
        now: what runs now, which the predictions are relative to.
        measured: step time over that of what runs now, of plans that were run.
    """
    ratios = {
        one.plan: one.relative_step_time.value
        for one in predictions
        if one.relative_step_time is not None and one.method != "profile_ratios"
    }
    known = {plan: ratio for plan, ratio in measured.items() if plan in ratios}
    if not known:
        return list(predictions)
    prior = prior_of([now, *ratios], [1.0, *ratios.values()])
    found = [Result(str(now), 1.0, 0.0, 1), *(Result(str(plan), ratio, 0.0, 1) for plan, ratio in known.items())]
    kernel = load_calibration().full.residual_kernel
    apart = [prior.apart(prior.index[one.configuration]) for one in found]
    before, after = believe(prior, kernel, found[:1], apart[:1]), believe(prior, kernel, found, apart)
    factors, widths = np.exp(after.mean - before.mean), after.deviation / np.maximum(before.deviation, _LEAST)
    places = {plan: prior.index[str(plan)] for plan in ratios if plan not in known}
    return [
        _moved(one, float(factors[place]), float(widths[place])) if (place := places.get(one.plan)) is not None else one
        for one in predictions
    ]


def _moved(prediction: Prediction, factor: float, width: float) -> Prediction:
    """The prediction with its times ``factor`` as long, and the interval on a logarithmic scale ``width`` as wide."""
    factors = {"step_time": factor, "relative_step_time": factor, "tokens_per_second": 1 / factor, "mfu": 1 / factor}
    found = {name: _scaled(getattr(prediction, name), times, width) for name, times in factors.items()}
    return prediction.model_copy(update=found)


def carried_over(
    study: Study, now: Prediction, then: Prediction, hardware: Slice | None, *, same_program: bool = False
) -> Prediction:
    """What is expected of another batch, sequence, hardware or precision, from the measured step of what runs.

    The residual ln(measured / modelled) carries over as from plan to plan: the less, the more of a token's step
    changes. On other hardware the interval is no narrower than the model's alone. Unchanged where no prediction starts
    from the measured step.

    Args:
        study: of what runs.
        now: of what runs, by the model alone.
        then: of the other run, by the model alone.
        hardware: of the other run.
        same_program: only a setting differs: the residual, which is the program's and the machine's, stays whole.
    """
    seconds, expected, other = anchoring_step(study), now.step_time, then.step_time
    if not seconds or expected is None or other is None or not half_width(other):
        return then
    fit, model, moved = load_calibration().full, study.experiment.model, _change_between(now, then)
    missed = math.log(seconds / expected.value)
    factor = math.exp(missed if same_program else fit.residual_transfer.expected(missed, moved))
    width = fit.anchored_widths.of(model is not None and model.is_moe).at(moved) / half_width(other)
    said = (
        f"It starts from the measured step, {format_seconds(seconds)}, where the model alone expects"
        f" {format_seconds(expected.value)}; by the model alone this would be {format_seconds(other.value)}."
    )
    asked = (note for note in then.notes if NARROWS not in note and OR_MEASURED not in note)
    found = _moved(then, factor, width if hardware == study.slice else max(width, 1.0))
    return found.model_copy(update={"notes": (said, *asked)})


def relative_to(now: Prediction, then: Prediction, model: Architecture | None) -> Quantity | None:
    """Step time of a run with another setting over that of what runs, both by the model alone; its interval is that of
    plans between which as much of a step changes."""
    before, after = now.step_time, then.step_time
    if before is None or after is None:
        return None
    widths = load_calibration().full.ratio_widths.of(model is not None and model.is_moe)
    ratio, moved = after.value / before.value, _change_between(now, then)
    spread = math.exp(widths.at(moved)) if moved else 1.0
    return after.model_copy(
        update={"value": ratio, "unit": "fraction", "source": RATIO, "low": ratio / spread, "high": ratio * spread}
    )


def _change_between(now: Prediction, then: Prediction) -> float:
    """How much of a token's step differs."""
    parts, others = _parts_per_token(now), _parts_per_token(then)
    names = [*{**parts, **others}]
    return float(change_between([parts.get(name, 0.0) for name in names], [others.get(name, 0.0) for name in names]))


def _parts_per_token(found: Prediction) -> dict[tuple[str, str | None], float]:
    """Device-seconds of each part for a token: what does not change with the size of the job or of its batch."""
    step, rate = found.step_time, found.tokens_per_second
    tokens = rate.value * step.value if rate and step else 1.0
    return {(one.name, one.axis): one.exposed_s * found.plan.devices / tokens for one in found.parts}


def _scaled(figure: Quantity | None, factor: float, width: float) -> Quantity | None:
    if figure is None:
        return None
    ends = {
        name: figure.value * factor * (end / figure.value) ** width
        for name, end in (("low", figure.low), ("high", figure.high))
        if end
    }
    return figure.model_copy(update={"value": figure.value * factor, "source": f"{figure.source}; {SOURCE}", **ends})


RAN = {Claim.STEP_TIME, Claim.RELATIVE, Claim.FITS, Claim.FASTER, Claim.SLOWER}
"""What is said of plans that ran."""
_OF_MEMORY = {*RAN, Claim.OUT_OF_MEMORY, Claim.HBM_BYTES, Claim.HBM_SHARE}


@dataclass(frozen=True)
class Revision:
    """Predictions after the evidence: all of them, those that it rules out, and the steps that were measured."""

    predictions: dict[Plan, Prediction]
    excluded: dict[Plan, StatedFact]
    measured: dict[Plan, float]
    """Step time over that of what runs now."""


def apply_outcomes(study: Study, evidence: Sequence[StatedFact]) -> Study:
    """The study with what the facts say of the memory of plans; a fact without a plan is of what runs now."""
    found: dict[Plan, MemoryOutcome] = {}
    for item in evidence:
        plan = item.plan or study.plan
        if plan is None or item.claim not in _OF_MEMORY:
            continue
        before = found.get(plan, MemoryOutcome(plan))
        if item.claim in (Claim.HBM_BYTES, Claim.HBM_SHARE):
            capacity = study.slice.chip.device_capacity if study.slice else None
            peak = item.value if item.claim is Claim.HBM_BYTES else (capacity or 0) * (item.value or 0)
            found[plan] = replace(before, peak_bytes=peak or None, source=item.words)
        else:
            fitted = item.claim is not Claim.OUT_OF_MEMORY
            by = Provenance.COMPILED if item.compiled else Provenance.MEASURED
            found[plan] = replace(before, fitted=fitted, source=item.words, provenance=by)
    return replace(study, outcomes=tuple(found.values())) if found else study


def apply_run_claims(experiment: Experiment, evidence: Sequence[StatedFact]) -> Experiment:
    """The record with the stated facts of the run applied."""
    for item in evidence:
        if item.claim is Claim.INCUMBENT:
            experiment = amend(experiment, Statement(plan=str(item.plan)))
        elif item.value is not None and item.claim is Claim.BATCH:
            experiment = amend(experiment, _set_batch(experiment, int(item.value)))
        elif item.value is not None and item.claim is Claim.SEQUENCE:
            experiment = amend(experiment, Statement(sequence_length=int(item.value)))
        elif item.value is not None and item.claim is Claim.NETWORK:
            hardware = experiment.hardware.model_copy(update={"network": item.value})
            experiment = experiment.model_copy(update={"hardware": hardware})
    return experiment


def _set_batch(experiment: Experiment, batch: int) -> Statement:
    """Another global batch; a stack that sets the size of a micro-batch then runs another number of them."""
    plan, before = experiment.plan, experiment.workload.global_batch
    keeps = contract_of(experiment.workload.framework).sets_micro_batch
    if plan is None or not keeps or not (plan.microbatches and before):
        return Statement(global_batch=batch)
    count, rest = divmod(plan.microbatches * batch, before)
    kept = plan if rest or not count else plan.model_copy(update={"microbatches": count})
    return Statement(global_batch=batch, plan=str(kept))


def revise(
    study: Study, incumbent: Prediction | None, predictions: Sequence[Prediction], evidence: Sequence[StatedFact]
) -> Revision:
    """Rule out plans that are known not to work, and put what was measured in place of what was predicted.

    Args:
        study: the run.
        incumbent: the prediction of what runs now.
        predictions: of other plans, relative to it.
        evidence: the facts, the oldest first.
    """
    excluded: dict[Plan, StatedFact] = {}
    now = current_step_time(study, evidence)
    found = {one.plan: one for one in _taught(study, predictions, evidence, now)}
    held = {plan: one.memory.total.value for plan, one in found.items() if one.memory is not None}
    measured: dict[Plan, float] = {}
    for item in evidence:
        if item.claim is Claim.CONSTRAINT:
            excluded |= {plan: item for plan in found if item.forbids(plan, held.get(plan))}
        if item.plan is None or item.claim in RUN_CLAIMS:
            continue
        if item.claim in EXCLUDING_CLAIMS:
            excluded |= dict.fromkeys(_taken_out(item, study, incumbent, held, evidence), item)
            continue
        if item.plan in found:
            found[item.plan] = _add_fact(item, found[item.plan], now, study)
        if (ratio := _ratio(item, now)) is not None:
            measured[item.plan] = ratio
        excluded.pop(item.plan, None)
    return Revision(found, excluded, measured)


def _taught(
    study: Study, predictions: Sequence[Prediction], evidence: Sequence[StatedFact], now: Quantity | None
) -> Sequence[Prediction]:
    """The predictions after what the measured plans teach of them."""
    ratios = {item.plan: _ratio(item, now) for item in evidence if item.plan is not None}
    measured = {plan: ratio for plan, ratio in ratios.items() if ratio and plan != study.plan}
    if study.plan is None or not measured:
        return predictions
    return learned(predictions, study.plan, measured)


def _taken_out(
    item: StatedFact,
    study: Study,
    incumbent: Prediction | None,
    modelled: Mapping[Plan, float],
    evidence: Sequence[StatedFact],
) -> list[Plan]:
    """The plan itself, and after an out-of-memory what is modelled to need about as much or more.

    Modelled HBM errs: what was seen to run stays, and with it what is modelled to need no more than that.
    """
    assert item.plan is not None
    held, now = dict(modelled), study.plan
    memory = incumbent.memory if incumbent is not None else None
    if memory is not None and item.plan == now:
        held[item.plan] = memory.total.value
    if item.claim is not Claim.OUT_OF_MEMORY or item.plan not in held:
        return [item.plan]
    ran = [one.plan for one in evidence if one.claim in RAN and one.plan != item.plan]
    fitted = [size for plan, size in held.items() if plan in ran]
    fitted += [memory.total.value] if memory is not None and memory.fits and item.plan != now else []
    least, proven = held[item.plan] * (1 - _ALIKE), max(fitted, default=0.0)
    return [item.plan, *(plan for plan, size in held.items() if size >= least and size > proven and plan not in ran)]


def _add_fact(item: StatedFact, prediction: Prediction, now: Quantity | None, study: Study) -> Prediction:
    ratio = _ratio(item, now)
    if ratio is None and item.claim is Claim.STEP_TIME and item.value:
        return _anchored(item, prediction, study)
    return prediction if ratio is None else _measured(item, prediction, ratio)


def _anchored(item: StatedFact, prediction: Prediction, study: Study) -> Prediction:
    """The prediction with its measured step, relative to what the run as it is would take by all measurements."""
    assert item.value is not None
    fields = _step_and_rates(prediction, stated(item, item.value, "s"))
    known, relative = study.profile, prediction.relative_step_time
    if known is not None and known.source == WORKED_OUT and known.kpis.step_time_s and relative is not None:
        factor = item.value / known.kpis.step_time_s / relative.value
        ends = {name: end * factor for name in ("value", "low", "high") if (end := getattr(relative, name))}
        fields["relative_step_time"] = relative.model_copy(update=ends)
    return prediction.model_copy(update=fields)


def _ratio(item: StatedFact, now: Quantity | None) -> float | None:
    if item.value is None:
        return None
    if item.claim is Claim.STEP_TIME and now is not None:
        return item.value / now.value
    return item.value if item.claim is Claim.RELATIVE else None


def _measured(item: StatedFact, prediction: Prediction, ratio: float) -> Prediction:
    step = stated(item, item.value or 0.0, "s") if item.claim is Claim.STEP_TIME else None
    fields = _step_and_rates(prediction, step) if step else {}
    return prediction.model_copy(update=fields | {"relative_step_time": stated(item, ratio, "fraction")})


def _step_and_rates(prediction: Prediction, step: Quantity) -> dict[str, Quantity]:
    """A stated step, and the rates that follow from it."""
    found, before = {"step_time": step}, prediction.step_time
    for name in ("tokens_per_second", "mfu"):
        if before is not None and (rate := getattr(prediction, name)) is not None:
            value = rate.value * before.value / step.value
            ends = {"value": value, "low": value, "high": value}
            found[name] = rate.model_copy(update={"provenance": step.provenance, "source": step.source, **ends})
    return found
