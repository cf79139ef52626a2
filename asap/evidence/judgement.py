"""A measurement is judged before it is used: whether it can be of the run on record, and if not, what explains it.

Readings (:mod:`asap.evidence.readings`) are compared as Bayes has it: how likely each was before, times how likely the
measured step, and the peak of HBM where it was measured, would be under it, averaged over its variants.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

from asap.core.units import Quantity, format_bytes, format_percent, format_seconds, significant
from asap.evidence.anchor import WORKED_OUT
from asap.evidence.cause_words import check_of, expectation, sentence
from asap.evidence.readings import (
    CONTRADICTED,
    PRIOR,
    RATES,
    STATED,
    CauseName,
    Run,
    Variant,
    predicted,
    readings,
    run_of,
    set_rate,
)
from asap.evidence.step_belief import Z_90
from asap.prediction.memory_outcomes import outcomes_of
from asap.prediction.predict_study import is_unexplained
from asap.prediction.prediction import Prediction
from asap.prediction.uncertainty.step_interval import excess, half_width, is_outside
from asap.study.study import Study

HIGHEST_PUBLISHED_MFU = 0.69
"""Of all runs in tests/data/measurements: MaxText on v5p, by the FLOPs of PaLM (arXiv:2204.02311, appendix B)."""
MOST_MFU = 0.8
"""Above it a measured step can only be a mistake of units or counting. Judgement: which steps are refused."""


def mfu_of_step(study: Study, seconds: float) -> float | None:
    """The MFU of a step of the run's model and batch on its hardware; ``None`` without the architecture."""
    run = run_of(study)
    now = predicted(run) if run is not None else None
    if now is None or now.mfu is None or now.step_time is None:
        return None
    return now.mfu.value * now.step_time.value / seconds


Verdict = Literal["inside", "slower", "faster", "out of memory", "ran"]
SHOWN = 4  # causes that are listed; judgement: how many
_NEGLIGIBLE = 0.01  # odds below which a cause is not listed; judgement: how many
_APART = 1.2
"""Times as long, or as short, as expected that is said within the interval. Judgement: which steps are findings."""
_HALVINGS = 7  # of a range of 64 times: to 3 %
_STEADY_EVIDENCE = 10.0
"""Odds for what happens in some steps only, where the fastest steps are as fast as expected, and against it where even
they are not. Judgement: the order of causes."""
_COUNTED, _MISCOUNTED = 0.2, 0.05
"""Share of the tokens that padding may make of a log's count, and how often a log counts others than ran. Judgement:
the order of causes."""
_UNFIT = 0.02
"""Least odds that a run fitted that ran: no model of memory is surer. Judgement: the order of causes."""
_HAPPEN_NOW_AND_THEN: tuple[CauseName, ...] = ("input", "interruptions")


class Cause(BaseModel):
    """What may explain a measurement."""

    model_config = ConfigDict(frozen=True)

    name: CauseName
    statement: str = Field(description="what it would be, and how much of it makes the model meet the measurement")
    expects: str = Field(description="what else would then be seen")
    check: str = Field(description="what tells")
    weight: float = Field(description="beside the other causes; all that were tried add up to 1")


class Judgement(BaseModel):
    """What was measured beside what the model expects of it: a step, or that the run died out of memory, or ran."""

    model_config = ConfigDict(frozen=True)

    verdict: Verdict
    measured_s: float | None = Field(default=None, description="None: what is judged is that it died, or that it ran")
    held_bytes: float | None = Field(default=None, description="of a device: at least as it died, at most as it ran")
    expected: Quantity = Field(description="step in seconds; where it died or ran, HBM in bytes")
    source: str | None = Field(default=None, description="who says that it died or ran, and with which figures")
    odds: str | None = Field(default=None, description="of fitting by the model alone")
    mfu: float | None = Field(default=None, description="that the measured step amounts to")
    causes: tuple[Cause, ...] = Field(default=(), description="the likeliest first; none where it is as expected")
    asked: str | None = Field(default=None, description="where it can only be a mistake of units or counting")

    @property
    def is_finding(self) -> bool:
        """Whether the measurement cannot be of the run on record, as the model has it."""
        return self.verdict != "inside"

    @property
    def factor(self) -> float:
        """How many times as long as expected the step takes; of HBM where it died or ran."""
        return (self.measured_s or self.held_bytes or 0.0) / self.expected.value

    @property
    def is_apart(self) -> bool:
        """Whether a step that the model does explain is still far from what it expects."""
        return self.measured_s is not None and max(self.factor, 1 / self.factor) > _APART

    @property
    def headline(self) -> str:
        """The finding in a few words."""
        if self.measured_s is None:
            return "ran" if self.verdict == "ran" else "died out of memory"
        times = significant(self.factor if self.verdict == "slower" else 1 / self.factor, 2)
        return f"{times} times {self.verdict} than expected"

    @property
    def statement(self) -> str:
        """The finding in a sentence; what is inside of the interval is said as well."""
        if self.measured_s is None:
            held = f"{format_bytes(self.expected.value)} of {format_bytes(self.held_bytes or 0.0)}"
            expected = f"{held} are modelled, {self.odds} likely to fit"
            return f"It {self.headline} ({self.source}), where {expected}. The model does not explain it."
        low, high = self.expected.low or self.expected.value, self.expected.high or self.expected.value
        expected = f"{format_seconds(self.expected.value)} ({format_seconds(low)} to {format_seconds(high)})"
        measured = format_seconds(self.measured_s)
        if self.verdict == "inside":
            if not self.is_apart:
                return f"The measured step, {measured}, is what the model expects of these settings: {expected}."
            longer = f"{format_percent(abs(self.factor - 1), 0)} {'longer' if self.factor > 1 else 'shorter'}"
            is_far = is_outside(self.measured_s, self.expected)
            also = ", but near the MFU of the best published runs on this chip" if is_far else ""
            return f"The measured step, {measured}, is {longer} than the model alone expects, {expected}{also}."
        why = self.asked or "The model does not explain it."
        mfu = f" (MFU {format_percent(self.mfu)})" if self.mfu and not self.asked else ""
        return f"{self.headline}: {measured} measured{mfu}, {expected} modelled. {why}"

    @property
    def advice(self) -> str:
        """What to do first."""
        if self.asked is not None or not self.causes:
            return "Check model, batch, length, hardware and the measurement first."
        first = self.causes[0]
        hbm = f"it needs {'less' if self.verdict == 'ran' else 'more'} HBM"
        what = hbm if self.measured_s is None else f"the step is {self.verdict}"
        return f"Find out first why {what} than modelled, likeliest because {first.statement}. Check: {first.check}."


@dataclass(frozen=True)
class MeasuredRun:
    """What was seen of a run: its step, the least of its steps (s), the peak of its HBM (bytes), and the tokens of a
    step of one device as the log counts them."""

    seconds: float
    least: float | None = None
    peak_bytes: float | None = None
    tokens: float | None = None

    @classmethod
    def of(cls, study: Study) -> "MeasuredRun | None":
        """What is on record; ``None`` where no step was measured."""
        profile, measured = study.profile, study.experiment.measured
        if profile is None or not profile.kpis.step_time_s or profile.source == WORKED_OUT:
            return None
        peak = next((one.peak_bytes for one in outcomes_of(study) if one.plan == study.plan), None)
        tokens = measured.tokens_per_device if measured is not None else None
        return cls(profile.kpis.step_time_s, profile.kpis.step_time_min_s, peak, tokens)


def judge(study: Study, observed: MeasuredRun | None = None) -> Judgement | None:
    """Judge the measured step of a run; ``None`` where none was measured, or none can be predicted.

    Args:
        study: the run.
        observed: what was seen of it, by default what is on record.
    """
    seen, run = observed or MeasuredRun.of(study), run_of(study)
    return judge_run(run, seen) if seen is not None and run is not None else None


def judge_run(run: Run, seen: MeasuredRun) -> Judgement | None:
    """Judge what was seen of a run; ``None`` where it cannot be predicted."""
    now = predicted(run)
    if now is None or now.step_time is None:
        return None
    expected = now.step_time
    mfu = now.mfu.value * expected.value / seen.seconds if now.mfu else None
    objection = run.objection(seen.seconds)
    unexplained = is_unexplained(seen.seconds, now, run.hardware.chip.name)
    if not unexplained and objection is None and (mfu is None or mfu <= MOST_MFU):
        return Judgement(verdict="inside", measured_s=seen.seconds, expected=expected, mfu=mfu)
    causes = tuple(_ranked(run, now, seen))
    verdict = "slower" if seen.seconds > expected.value else "faster"
    asked = None
    if mfu is not None and mfu > MOST_MFU:
        published = format_percent(HIGHEST_PUBLISHED_MFU, 0)
        beyond = "more than the hardware can" if mfu > 1 else f"and no published run has more than {published}"
        differ = f"That would be an MFU of {format_percent(mfu, 0)}, {beyond}: units or counts must differ."
        asked = _asked(differ, causes)
    elif objection is not None:
        said = f"{objection[0].upper()}{objection[1:]}"
        asked = _asked(f"{said}: units, counts or the network must differ.", causes)
    return Judgement(
        verdict=verdict, measured_s=seen.seconds, expected=expected, mfu=mfu, causes=causes[:SHOWN], asked=asked
    )


@dataclass(frozen=True)
class _Explained:
    """A reading, its prediction, and how likely what was seen is under it."""

    variant: Variant
    prediction: Prediction
    likelihood: float


def _ranked(run: Run, now: Prediction, seen: MeasuredRun) -> Iterator[Cause]:
    """Causes that explain what was seen, the likeliest first."""
    assert now.step_time is not None
    slower = seen.seconds > now.step_time.value
    found: dict[CauseName, list[_Explained]] = {}
    for variant in readings(run):
        other = now if variant.run is run else predicted(variant.run)
        if other is None or other.step_time is None:
            continue
        changes = (other.step_time.value * variant.added > now.step_time.value) == slower
        likely = _likelihood(variant, other, seen) if changes else 0.0
        found.setdefault(variant.cause, []).append(_Explained(variant, other, likely))
    steady = _steadiness(now.step_time, seen)
    weights: dict[CauseName, float] = {
        name: PRIOR[name]
        * (steady if name in _HAPPEN_NOW_AND_THEN else 1.0)
        * (STATED if name in run.set_causes else CONTRADICTED if name in run.contradicted else 1.0)
        * _mean(tried)
        for name, tried in found.items()
    }
    total = sum(weights.values())
    for name in sorted(weights, key=lambda one: -weights[one]):
        if total <= 0 or weights[name] < _NEGLIGIBLE * total:
            continue
        best = max(found[name], key=lambda each: each.likelihood * each.variant.weight)
        variant = _met(best.variant, seen.seconds)
        yield Cause(
            name=name, statement=sentence(variant, run), expects=expectation(variant, run, now, best.prediction),
            check=check_of(name, run), weight=weights[name] / total,
        )  # fmt: skip


def _met(variant: Variant, seconds: float) -> Variant:
    """The variant with the rate between devices at which the model meets the measured step, found by halving."""
    if variant.cause not in RATES:
        return variant
    low, high = math.log(variant.size / 8), math.log(variant.size * 8)
    for _ in range(_HALVINGS):
        rate = math.exp((low + high) / 2)
        found = predicted(set_rate(variant.run, variant.cause, rate))
        if found is None or found.step_time is None:
            return variant
        low, high = (low, math.log(rate)) if found.step_time.value < seconds else (math.log(rate), high)
    return Variant(variant.cause, math.exp((low + high) / 2), variant.run, variant.added, variant.weight)


def _likelihood(variant: Variant, prediction: Prediction, seen: MeasuredRun) -> float:
    """Density of what was seen under a reading."""
    assert prediction.step_time is not None
    miss = excess(seen.seconds / variant.added, prediction.step_time)
    found = _normal(miss, half_width(prediction.step_time) / Z_90)
    memory, tokens, devices = prediction.memory, variant.run.workload.tokens, variant.run.hardware.devices
    if seen.peak_bytes and memory is not None and memory.total.low and memory.total.high:
        middle = math.sqrt(memory.total.low * memory.total.high)
        found *= _normal(math.log(seen.peak_bytes / middle), half_width(memory.total) / Z_90)
    elif memory is not None and memory.probability_fits is not None:
        found *= max(memory.probability_fits, _UNFIT)
    if seen.tokens and tokens and not math.isclose(seen.tokens * devices, tokens, rel_tol=_COUNTED):
        found *= _MISCOUNTED
    return found


def _normal(miss: float, deviation: float) -> float:
    return math.exp(-0.5 * (miss / deviation) ** 2) / deviation if deviation > 0 else 0.0


def _steadiness(expected: Quantity, seen: MeasuredRun) -> float:
    """Odds for what happens in some steps only."""
    if seen.least is None:
        return 1.0
    return 1 / _STEADY_EVIDENCE if is_outside(seen.least, expected) else _STEADY_EVIDENCE


def _mean(tried: Sequence[_Explained]) -> float:
    """Of the likelihoods, weighted by the variants."""
    weights = [each.variant.weight for each in tried]
    return sum(weight * each.likelihood for weight, each in zip(weights, tried, strict=True)) / sum(weights)


def _asked(differs: str, causes: tuple[Cause, ...]) -> str:
    fitting = " or ".join(cause.statement for cause in causes[:2])
    question = f"It would fit if {fitting}. Which is it?" if fitting else "Which model, batch and length ran?"
    return f"{differs} {question}"
