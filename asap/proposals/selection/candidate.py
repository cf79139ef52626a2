"""A plan with its prediction, its score, and what a predicted gain is worth after doubt; candidates in their order."""

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from statistics import NormalDist

import numpy as np
from numpy.typing import ArrayLike, NDArray

from asap.core.units import Quantity
from asap.evidence.step_belief import Z_90
from asap.plans import Plan
from asap.prediction.prediction import Prediction


def probability_faster(gain: float, half_width: float) -> float:
    """That ``ln(step time)`` falls, for a normal distribution with this 90 % interval."""
    return NormalDist().cdf(gain / (half_width / Z_90)) if half_width > 0 else float(gain > 0) + 0.5 * (gain == 0)


LIKELY = 0.95
"""Probability that a plan fits from which it needs no more room. Judgement: the order of proposals."""


def add_precedent(gain: ArrayLike, added: ArrayLike, fit_odds: ArrayLike = 1.0) -> NDArray[np.float64]:
    """Gain in ``ln(step time)`` with what precedents add to it: they decide between gains, turn no predicted loss into
    one, and speak for no plan that may not fit, as what such a change held elsewhere says nothing of HBM here."""
    before = np.asarray(gain, dtype=float)
    speaks = (before > 0) & (np.asarray(fit_odds) >= LIKELY)
    return before + np.where(speaks, added, np.minimum(added, 0.0))


def after_doubt(gain: float, half_width: float, fit_odds: float = 1.0) -> float:
    """Gain in ``ln(step time)`` after doubt; a loss counts whole."""
    return gain * (2 * probability_faster(gain, half_width) - 1) * fit_odds if gain > 0 else gain


def after_doubt_of_each(
    gain: NDArray[np.float64], half_width: NDArray[np.float64], fit_odds: NDArray[np.float64] | float = 1.0
) -> NDArray[np.float64]:
    """The same of many, to a few parts in ten thousand (Page, Applied Statistics 26, 1977, 75: a normal distribution
    by a hyperbolic tangent)."""
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        z = np.clip(np.where(half_width > 0, gain * Z_90 / half_width, np.sign(gain) * 9), -9, 9)
    odds = np.tanh(z * math.sqrt(2 / math.pi) * (1 + 0.044715 * z * z))
    return np.where(gain > 0, gain * odds * fit_odds, gain)


def log_interval(relative: Quantity) -> tuple[float, float]:
    """Gain in ``ln(step time)`` and half the width of its 90 % interval; 0 where it has none."""
    if relative.low is None or relative.high is None or relative.low >= relative.high:
        return -math.log(relative.value), 0.0
    return -math.log(relative.value), math.log(relative.high / relative.low) / 2


LEAST_ODDS = 1e-9
"""Least probability that a plan fits: no model is surer than that. Judgement: nothing but order among plans that cannot
fit."""
SHOWN_PRECEDENT = 0.001
"""Gain in ``ln(step time)`` from which on a precedent is said to count. Judgement: what is printed."""
SURE_TO_FIT = 0.99
"""Probability from which on a plan is taken to fit, and no odds are shown. Judgement: what is printed."""


@dataclass(frozen=True)
class Candidate:
    """A plan with its prediction and its score.

    Args:
        prediction: of the plan.
        score: what decides the order, in ``ln(step time)``.
        strategy: what most of its gain comes from; found from the changes where the search did not say.
        precedent: what precedents add to its gain.
        makes_fit: it fits where the plan that runs does not.
        nothing_runs: the plan that it is compared with is a start that was assumed.
    """

    prediction: Prediction
    score: float
    strategy: str = ""
    precedent: float = 0.0
    makes_fit: bool = False
    nothing_runs: bool = False

    @property
    def plan(self) -> Plan:
        """The plan that is predicted."""
        return self.prediction.plan


def expected_gain(prediction: Prediction) -> float:
    """``ln`` of how many times faster than the incumbent a plan is expected to be."""
    relative = prediction.relative_step_time
    return 0.0 if relative is None else -math.log(relative.value)


def kept_on_host(plan: Plan) -> int:
    """Kinds of tensors that a plan keeps in host memory."""
    return len(plan.offload) + plan.moves_activations


def set_prediction(candidate: Candidate, prediction: Prediction) -> Candidate:
    """The candidate with another prediction, and the score that it gives."""
    if prediction.relative_step_time is None:
        return replace(candidate, prediction=prediction)
    score = worth(prediction, candidate.precedent, candidate.makes_fit, candidate.nothing_runs)
    return replace(candidate, prediction=prediction, score=score)


def fits(prediction: Prediction) -> bool:
    """Whether a plan fits into HBM, as far as that can be predicted."""
    return prediction.memory is None or prediction.memory.fits


def fit_odds(prediction: Prediction) -> float:
    """The probability that a plan fits into HBM; 1 where nothing is predicted, or it is known to fit."""
    memory = prediction.memory
    return 1.0 if memory is None or memory.probability_fits is None else max(memory.probability_fits, LEAST_ODDS)


def worth(prediction: Prediction, precedent: float, makes_fit: bool, nothing_runs: bool = False) -> float:
    """The score of a plan whose step time is known relative to the incumbent's."""
    assert prediction.relative_step_time is not None
    gain, half_width = log_interval(prediction.relative_step_time)
    half_width, odds = 0.0 if nothing_runs else half_width, fit_odds(prediction)
    if makes_fit:
        return gain + (precedent if odds >= LIKELY else min(precedent, 0.0)) - half_width + math.log(odds)
    return after_doubt(float(add_precedent(gain, precedent, odds)), half_width, odds)


def rank(
    predictions: Iterable[Prediction],
    incumbent: Plan | None,
    priors: Mapping[Plan, float] | None = None,
    strategies: Mapping[Plan, str] | None = None,
    fits_now: bool = True,
    nothing_runs: bool = False,
) -> list[Candidate]:
    """Best first. The incumbent itself is left out, and plans that do not fit come after all that do. Of plans that
    score the same, what needs less of the host comes first.

    Args:
        predictions: one per plan.
        incumbent: what runs now; without it, plans are ranked by their step time over the odds that they fit.
        priors: gain in ``ln(step time)`` that precedents add or take.
        strategies: what most of a plan's gain comes from.
        fits_now: whether the incumbent fits into HBM.
        nothing_runs: whether the incumbent is a start that was assumed.
    """
    added, named = priors or {}, strategies or {}
    candidates = [
        Candidate(
            one, _score(one, incumbent, added.get(one.plan, 0.0), fits_now, nothing_runs), named.get(one.plan, ""),
            added.get(one.plan, 0.0), not fits_now and fits(one), nothing_runs,
        )
        for one in predictions
        if one.plan != incumbent
    ]  # fmt: skip
    return sorted(
        candidates, key=lambda c: (not fits(c.prediction), -round(c.score, 6), kept_on_host(c.plan), str(c.plan))
    )


def _score(
    prediction: Prediction, incumbent: Plan | None, precedent: float, fits_now: bool, nothing_runs: bool
) -> float:
    if incumbent is None or prediction.relative_step_time is None:
        return math.log(fit_odds(prediction) / step.value) if (step := prediction.step_time) else 0.0
    return worth(prediction, precedent, not fits_now, nothing_runs)
