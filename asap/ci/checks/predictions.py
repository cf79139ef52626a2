"""The prediction of a configuration before and after, anchored to a measured step where one applies."""

from dataclasses import dataclass, replace
from typing import Any

from asap.ci.report import PredictionSummary
from asap.ci.source.policy import Prices
from asap.core.errors import AsapError
from asap.core.text import plain
from asap.core.units import Provenance, Quantity
from asap.experiments import Experiment
from asap.prediction.prediction import Prediction
from asap.study.study import Study

BILLION = 1e9
SECONDS_AN_HOUR = 3600
HOURS_A_DAY = 24
_PADDING = 128
"""Tokens to a multiple of which Megatron-LM pads a vocabulary, times the ways in which it is split
(``--make-vocab-size-divisible-by``)."""

_NO_HARDWARE = 'the hardware is unknown: add --hardware h100-64, or in asap.toml [ci.hardware] "configs/**" = "h100-64"'


@dataclass(frozen=True)
class SidePrediction:
    """The prediction of one side, or why there is none."""

    prediction: Prediction | None = None
    reason: str | None = None


def predict_side(study: Study, linked: Study | None) -> SidePrediction:
    """Predict the plan of a configuration, anchored to the linked run if the two differ in nothing but the plan."""
    if study.plan is None:
        return SidePrediction(reason=_NO_HARDWARE if study.slice is None else "the plan is unknown")
    from asap.prediction.predict_study import expect

    try:
        found = expect(anchor_to_measurement(study, linked), [study.plan])[0]
        return SidePrediction(_as_measured(found, study.experiment))
    except AsapError as error:
        return SidePrediction(reason=_NO_HARDWARE if study.slice is None else plain(error.message, 300))


def _as_measured(expected: Prediction, experiment: Experiment) -> Prediction:
    """What is expected of a run with its own measured step, as a log states it, and the rates that follow."""
    measured, before = experiment.measured, expected.step_time
    if measured is None or before is None:
        return expected
    kind, source, faster = Provenance.MEASURED, measured.source, before.value / measured.seconds
    update = {"step_time": Quantity(value=measured.seconds, unit="s", provenance=kind, source=source)}
    for name in ("tokens_per_second", "mfu"):
        if rate := getattr(expected, name):
            update[name] = Quantity(value=rate.value * faster, unit=rate.unit, provenance=kind, source=source)
    return expected.model_copy(update=update)


def relative_cost(
    before: Study, after: Study, sides: tuple[SidePrediction, SidePrediction], linked: Study | None
) -> Quantity | None:
    """Chip-seconds per token, after over before; ``None`` if the model differs or one side has no prediction.

    If only plan and batch differ and not both were measured, the interval is that of such a change; otherwise both
    figures are treated as independent, which gives the widest interval.
    """
    one, other = (side.prediction for side in sides)
    if one is None or other is None or not same_model(before, after):
        return None
    seen = before.experiment.measured and after.experiment.measured
    if not seen and before.plan is not None and after.plan is not None and _same_but_batch(before, after):
        from asap.prediction.predict_study import expect

        incumbent = linked if linked and linked.plan == before.plan else None
        start = replace(anchor_to_measurement(before, incumbent), experiment=before.experiment)
        batch = after.experiment.workload.global_batch
        larger = {"global_batch": batch} if batch != before.experiment.workload.global_batch else {}
        return expect(start, [after.plan.model_copy(update=larger)])[0].relative_step_time
    first, second = _chip_seconds(one, before), _chip_seconds(other, after)
    return None if first is None or second is None else _ratio(second, first)


def anchor_to_measurement(study: Study, linked: Study | None) -> Study:
    """The study with the profile and plan of the linked run, if the two differ in nothing but the plan."""
    if linked is None or linked.profile is None or linked.plan is None or not same_run(study, linked):
        return study
    experiment = study.experiment.model_copy(update={"plan": linked.plan})
    return replace(study, experiment=experiment, profile=linked.profile)


def same_run(one: Study, other: Study) -> bool:
    """Whether two runs have the same model, batch, sequence, precision and hardware."""
    batches = {study.experiment.workload.global_batch for study in (one, other)}
    return len(batches) == 1 and _shapes(one) == _shapes(other) and _same_but_batch(one, other)


def _same_but_batch(one: Study, other: Study) -> bool:
    a, b = one.experiment.workload, other.experiment.workload
    alike = a.sequence_length == b.sequence_length and a.precision == b.precision
    return alike and same_model(one, other) and one.slice == other.slice


def same_model(one: Study, other: Study) -> bool:
    """Whether two models differ by no more than tokens that pad the vocabulary for tensor parallelism."""
    a, b = _shapes(one), _shapes(other)
    sizes = [int(shapes.pop("vocab", None) or 0) for shapes in (a, b)]
    ways = max(study.plan.degree("model") if study.plan else 1 for study in (one, other))
    return a == b and (sizes[0] == sizes[1] or (min(sizes) > 0 and abs(sizes[0] - sizes[1]) < _PADDING * ways))


def _shapes(study: Study) -> dict[str, Any]:
    model = study.experiment.model
    return model.model_dump(exclude={"name"}) if model else {}


def summarise(prediction: Prediction, study: Study, prices: Prices) -> PredictionSummary:
    """A prediction with its cost, as the report holds it."""
    seconds = _chip_seconds(prediction, study)
    price = prices.chips.get(study.slice.chip.name) if study.slice else None
    per_billion = BILLION / SECONDS_AN_HOUR
    hours = _scaled(seconds, per_billion, "chip-hours", "chips x time per 10⁹ tokens") if seconds else None
    memory = prediction.memory
    day = None
    if price is not None and study.slice is not None:
        value = price * study.slice.chips * HOURS_A_DAY
        source = f"{study.slice.chips} chips x {HOURS_A_DAY} hours x the stated price"
        day = Quantity(value=value, unit=prices.currency, provenance=Provenance.STATED, source=source)
    return PredictionSummary(
        step_time=prediction.step_time,
        tokens_per_second=prediction.tokens_per_second,
        mfu=prediction.mfu,
        hbm=memory.total if memory else None,
        hbm_capacity=memory.capacity_bytes if memory else None,
        fit=memory.verdict if memory else None,
        fits_odds=memory.probability_fits if memory else None,
        chip_hours=hours,
        money_per_day=day,
        money=_scaled(hours, price, prices.currency, "chip-hours x the stated price") if hours and price else None,
        from_profile=prediction.method != "architecture",
    )


def _chip_seconds(prediction: Prediction, study: Study) -> Quantity | None:
    """Chip-seconds per token."""
    rate = prediction.tokens_per_second
    if rate is None or study.slice is None or rate.value <= 0:
        return None
    chips = study.slice.chips
    low, high = (chips / end if end else None for end in (rate.high, rate.low))
    return rate.model_copy(update={"value": chips / rate.value, "unit": "s", "low": low, "high": high})


def _ratio(after: Quantity, before: Quantity) -> Quantity:
    ends = ((after.low, before.high), (after.high, before.low))
    low, high = (one / other if one is not None and other else None for one, other in ends)
    return Quantity(
        value=after.value / before.value, unit="fraction", provenance=Provenance.MODELLED,
        source="ratio of two independent predictions", low=low, high=high,
    )  # fmt: skip


def _scaled(quantity: Quantity, factor: float, unit: str, source: str) -> Quantity:
    low, high = (None if end is None else end * factor for end in (quantity.low, quantity.high))
    value = quantity.value * factor
    return quantity.model_copy(update={"value": value, "unit": unit, "source": source, "low": low, "high": high})
