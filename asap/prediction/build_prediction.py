"""One evaluated plan as a Prediction: parts, intervals, provenance and notes."""

import math
from dataclasses import dataclass, fields, replace

import numpy as np

from asap.core.units import Provenance, Quantity, format_bytes, format_percent, significant
from asap.diagnosis.facts import STEP_TIME_VARIATION
from asap.plans import Plan
from asap.prediction.evaluation import FIT_CONFIDENCE, Evaluation
from asap.prediction.prediction import OPTIMIZER_ON_CPU, MemoryPart, MemoryPrediction, Method, Prediction, TimePart
from asap.prediction.profile_ratios import doublings
from asap.prediction.step_model.communication import collective_kind
from asap.prediction.step_model.compute import model_flops
from asap.prediction.step_model.inputs import Number
from asap.prediction.step_model.recomputation import REMAT_LADDER
from asap.prediction.step_model.step_parts import COLLECTIVES, change_between, step_parts
from asap.prediction.uncertainty.own_runs import Narrowing
from asap.prediction.uncertainty.residual_kernel import Widths
from asap.prediction.uncertainty.step_interval import REASONS, widest_doubt

MODEL = "analytic step model, asap/prediction, constants of calibration.json"
RATIO = "ratio of two modelled steps, constants of calibration.json"
TELLING = 0.03
"""Spread of ln(step) from which what is not said is worth telling. Judgement: which notes are printed."""
DECIDES = 0.5
"""Odds to fit that another reading of what is not said costs and is named. Judgement: which notes are printed."""
WIDE = 0.35
"""Half-width of ln(step) from which an interval is called wide: 42 % more. Judgement: which notes are printed."""
NARROWS, OR_MEASURED = " One measured step (--step-time) narrows it.", ", or give one measured step"
"""What notes ask for where no step was measured."""
ANCHORED = "analytic step model, anchored to the measured step"

# name (None: by the kind of context parallelism), mesh axis, field of StepTime that is busy, field that is exposed
_PARTS = (
    ("compute", None, "compute", "compute"),
    ("hbm", None, "hbm", "hbm"),
    ("all-reduce", "model", "tensor", "tensor_exposed"),
    (None, "seq", "sequence", "sequence_exposed"),
    ("all-to-all", "expert", "expert", "expert_exposed"),
    ("all-gather and reduce-scatter", "data", "data", "data_exposed"),
    ("all-reduce", "replica", "replica", "replica_exposed"),
    ("all-reduce over slices", "replica", "slices", "slices_exposed"),
    ("collective-permute", "stage", "stage", "stage_exposed"),
    ("pipeline bubble", None, "bubble", "bubble"),
    ("optimizer", None, "optimizer", "optimizer"),
    ("host transfers", None, "transfer", "transfer_exposed"),
    ("host", None, "overhead", "overhead"),
)


@dataclass(frozen=True)
class Anchor:
    """The plan that others are compared with: its index in the evaluation, and its step time if it was measured."""

    index: int
    step_time: float | None


@dataclass(frozen=True)
class _Estimate:
    method: Method
    seconds: float
    width: float
    source: str
    relative: Quantity | None = None


def build_prediction(
    evaluation: Evaluation, index: int, asked: Plan, anchor: Anchor | None, own: Narrowing | None = None
) -> Prediction:
    """The prediction of one plan of an evaluation; ``own`` is what the team's own runs say of all of them."""
    estimate = _estimate(evaluation, index, anchor)
    own = own if estimate.method == "architecture" else None
    if own is not None:
        # by the same factor for all plans, so that their ratios stay
        shift = math.exp(own.shift * float(evaluation.half_width[anchor.index if anchor else index]))
        width, source = estimate.width * own.scale, estimate.source + own.source
        estimate = replace(estimate, seconds=estimate.seconds * shift, width=width, source=source)
    seconds, width, source = estimate.seconds, estimate.width, estimate.source
    inputs = evaluation.inputs
    tokens = _at(inputs.workload.batch, index) * _at(inputs.workload.sequence, 0)
    useful = _at(model_flops(inputs), index) / (_at(inputs.hardware.peak_matmul, 0) * asked.devices)
    scale, said_by_own = seconds / _at(evaluation.step.total, index), (own.note,) if own else ()
    return Prediction(
        plan=asked,
        method=estimate.method,
        step_time=_interval(seconds, "s", source, width),
        relative_step_time=estimate.relative,
        parts=_time_parts(evaluation, index, scale),
        scale=scale,
        shares=_shares(evaluation, index),
        communication=_communication(evaluation, index),
        memory=_memory(evaluation, index),
        tokens_per_second=_interval(tokens / seconds, "tokens/s", source, width),
        mfu=_interval(useful / seconds, "fraction", source, width),
        region_distance=float(evaluation.distance[index]),
        doublings=None if anchor is None else doublings(evaluation.plans[index], evaluation.plans[anchor.index]),
        notes=(*_notes(evaluation, index, asked), *_why_wide(evaluation, index, estimate), *said_by_own),
    )


def _at(value: Number, index: int) -> float:
    array = np.asarray(value, dtype=float)
    return float(array.flat[index if array.size > 1 else 0])


def _interval(value: float, unit: str, source: str, width: float) -> Quantity:
    low, high = value * math.exp(-width), value * math.exp(width)
    return Quantity(value=value, unit=unit, provenance=Provenance.MODELLED, source=source, low=low, high=high)


def _estimate(evaluation: Evaluation, index: int, anchor: Anchor | None) -> _Estimate:
    fit, total = evaluation.fit, _at(evaluation.step.total, index)
    mixed = total * math.exp(evaluation.mixture.shift[index])
    plain = _Estimate("architecture", mixed, float(evaluation.half_width[index]), MODEL)
    if anchor is None:
        return plain
    same = evaluation.plans[index] == evaluation.plans[anchor.index]
    change = None if same else _change(evaluation, index, anchor.index)
    sequences, mixture = evaluation.inputs.workload.batch, _at(evaluation.inputs.model.experts, 0) > 0
    before = _at(evaluation.step.total, anchor.index)
    larger = _at(sequences, index) / _at(sequences, anchor.index)
    if not anchor.step_time:
        ratio = mixed / (before * math.exp(evaluation.mixture.shift[anchor.index])) / larger
        return replace(plain, relative=_relative(ratio, RATIO, fit.ratio_widths.of(mixture), change))
    missed, widths = math.log(anchor.step_time / before), fit.anchored_widths.of(mixture)
    moved = _change(evaluation, index, anchor.index, recomputed=False)
    seconds = total * math.exp(fit.residual_transfer.expected(missed, moved))
    relative = _relative(seconds / anchor.step_time / larger, ANCHORED, widths, change)
    width = STEP_TIME_VARIATION if change is None else widths.at(change)
    return _Estimate("anchored_architecture", seconds, width, ANCHORED, relative)


def _relative(ratio: float, source: str, widths: Widths, change: float | None) -> Quantity:
    return _interval(ratio, "fraction", source, 0.0 if change is None else widths.at(change))


def _change(evaluation: Evaluation, index: int, other: int, recomputed: bool = True) -> float:
    """How much of a sequence's step changes between two plans."""
    parts, batch = step_parts(evaluation.step), evaluation.inputs.workload.batch
    one, two = ([_at(part, place) / _at(batch, place) for part in parts] for place in (index, other))
    return float(change_between(one, two, recomputed))


def _time_parts(evaluation: Evaluation, index: int, scale: float) -> tuple[TimePart, ...]:
    found, of = [], evaluation.inputs
    on_cpu = _at(of.plan.host_optimizer, index) * _at(of.workload.updates_on_host, index) > 0
    for name, axis, busy, exposed in _PARTS:
        seconds = _at(getattr(evaluation.step, busy), index) * scale
        if seconds > 0:
            shown = _at(getattr(evaluation.step, exposed), index) * scale
            name = OPTIMIZER_ON_CPU if on_cpu and busy == "optimizer" else name or collective_kind(of.workload)
            found.append(TimePart(name=name, axis=axis, busy_s=seconds, exposed_s=shown))
    return tuple(found)


def _shares(evaluation: Evaluation, index: int) -> dict[str, float]:
    step, names = evaluation.step, ("matmul", "attention", "loss", "recomputation")
    kinds = step.matmul, step.attention, step.loss, step.compute_again + step.hbm_again
    return {name: _at(seconds, index) / _at(step.total, index) for name, seconds in zip(names, kinds, strict=True)}


def _communication(evaluation: Evaluation, index: int) -> Quantity:
    step = evaluation.step
    share = sum(_at(getattr(step, f"{name}_exposed"), index) for name in COLLECTIVES) / _at(step.total, index)
    return Quantity(value=share, unit="fraction", provenance=Provenance.MODELLED, source=MODEL)


def _memory(evaluation: Evaluation, index: int) -> MemoryPrediction:
    sizes = {field.name: _at(getattr(evaluation.memory, field.name), index) for field in fields(evaluation.memory)}
    held, overhead = sum(sizes.values()), evaluation.overhead
    low, high = (held * end ** evaluation.scatter[index] for end in (overhead.low, overhead.high))
    on_host, holds = float(evaluation.on_host[index]), _at(evaluation.inputs.hardware.host_bytes, 0)
    odds = evaluation.fit_odds[index]
    return MemoryPrediction(
        total=Quantity(value=held, unit="bytes", provenance=Provenance.MODELLED, source=MODEL, low=low, high=high),
        capacity_bytes=evaluation.capacity,
        fits=bool(odds >= FIT_CONFIDENCE) and on_host <= holds,
        probability_fits=float(odds),
        unsaid=_unsaid(evaluation, index),
        parts=tuple(MemoryPart(name=name, size_bytes=size) for name, size in sizes.items() if size > 0),
        host_bytes=on_host,
        host_capacity_bytes=holds if math.isfinite(holds) else None,
    )


def _unsaid(evaluation: Evaluation, index: int) -> str:
    """What is not stated and decides whether a plan fits."""
    for setting, held, costs in evaluation.risks:
        if costs[index] >= DECIDES:
            needs = f"with another it needs {format_bytes(held[index])}"
            return f"Not stated: {setting}; {needs}, so state it ({evaluation.told_by[setting]})."
    return ""


def _notes(evaluation: Evaluation, index: int, asked: Plan) -> tuple[str, ...]:
    notes = []
    policy = evaluation.plans[index].remat
    if asked.remat is None and policy is not None:
        tried = " and ".join(tried.value for tried in REMAT_LADDER)
        notes.append(
            f"The plan states no rematerialisation; of {tried} it is predicted with {policy.value}, the least that fits"
            " with room to spare, else the last."
        )
    rates, on_host = evaluation.inputs.hardware, float(evaluation.on_host[index])
    if on_host > 0:
        holds, devices = _at(rates.host_bytes, 0), _at(rates.host_devices, 0)
        has = f"its maker's has {format_bytes(holds * devices)}" if math.isfinite(holds) else "does a node have that?"
        needs = f"What is offloaded needs {format_bytes(on_host * devices)} of host memory on each node ({has})"
        notes.append(f"{needs}{': it does not fit' if on_host > holds else ''}.")
    if (ratio := _at(rates.peak_matmul, 0) / _at(rates.peak_bf16, 0)) > 1:
        notes.append(f"MFU is of the peak at this precision, and {significant(ratio)} times as high of the bf16 peak.")
    if evaluation.distance[index] > 0:
        notes.append("This run lies outside the calibrated region, so its interval is wider.")
    return tuple(notes)


def _why_wide(evaluation: Evaluation, index: int, estimate: _Estimate) -> tuple[str, ...]:
    """What widens the interval most, and how to narrow it."""
    if estimate.method != "architecture":
        return ()
    spreads = {name: float(spread[index]) for name, spread in evaluation.mixture.spreads.items()}
    worst = max(spreads, key=lambda name: spreads[name], default=None)
    doubt = widest_doubt(evaluation.fit.step_interval, evaluation.doubts, index)
    notes = []
    if doubt in REASONS and estimate.width > WIDE:
        notes.append(f"The interval is wide: {REASONS[doubt]}.{NARROWS}")
    if worst is not None and spreads[worst] >= TELLING:
        most = " most" if doubt == "unstated" else ""
        notes.append(
            f"Not stated: {worst}. It widens the interval{most}, by {format_percent(spreads[worst])} of the step;"
            f" state it ({evaluation.told_by[worst]}){OR_MEASURED}."
        )
    return tuple(notes)
