"""A plan with its prediction and its score.

The score is the expected gain in ``ln(step time)`` with what precedents add, after doubt
(:mod:`asap.proposals.selection.doubt`). Where the run does not fit into HBM, it is the upper end of the step time's
interval over the probability that the plan fits: the more of the step changes, the less is known of it, so of two that
are as fast the smaller change comes first. Where nothing runs, the plan that all are compared with is only assumed: how
surely another one beats it counts nothing, and neither does how much of it changes.
"""

import math
from dataclasses import dataclass, replace

from asap.plans import Plan
from asap.prediction.prediction import Prediction
from asap.proposals.selection.doubt import add_precedent, after_doubt, log_interval

LIKELY = 0.95
"""Probability that a plan fits from which it needs no more room."""
LEAST_ODDS = 1e-9
"""Least probability that a plan fits: no model is surer than that."""
SURE_TO_FIT = 0.99
"""Probability from which on a plan is taken to fit, and no odds are shown."""


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
    half_width = 0.0 if nothing_runs else half_width
    odds = fit_odds(prediction)
    if makes_fit:
        return gain + precedent - half_width + math.log(odds)
    return after_doubt(float(add_precedent(gain, precedent)), half_width, odds)
