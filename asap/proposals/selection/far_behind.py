"""Whether a candidate is so far behind a better one that it is not worth a test of its own.

A second idea is for the case that the first one fails. It is no proposal where little is left to gain by it.
"""

import math

from asap.proposals.selection.candidate import Candidate, expected_gain, fit_odds

HALF = 0.5
"""Share of the first proposal's gain that another one is expected to bring, at least."""
QUARTER = HALF * HALF
"""Share of what counts of the first proposal: half the gain, at half the odds."""
LONGER = math.log(1.1)
"""``ln`` of how much longer than a better plan one may take where there is nothing to gain on."""
SURER = 0.1
"""Probability by which a plan has to be likelier to fit than another to be surer."""


def gains_far_less(one: Candidate, first: Candidate) -> bool:
    """Whether a plan is expected to gain less than half of the first proposal, or counts less than a quarter. Ratios
    of a profile are too rough to tell."""
    if one.prediction.relative_step_time is None or one.prediction.method == "profile_ratios":
        return False
    least = HALF * expected_gain(first.prediction)
    return expected_gain(one.prediction) < least or one.score < QUARTER * first.score


def takes_far_longer(one: Candidate, better: Candidate) -> bool:
    """Whether a plan that makes a run fit takes more than a tenth longer than a better one, over P(fits), and is not
    surer to fit."""
    surer = fit_odds(one.prediction) > fit_odds(better.prediction) + SURER
    return _time_over_odds(one) > _time_over_odds(better) + LONGER and not surer


def _time_over_odds(one: Candidate) -> float:
    return -expected_gain(one.prediction) - math.log(fit_odds(one.prediction))
