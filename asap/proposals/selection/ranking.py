"""Candidates in their order: best first, and what does not fit last."""

import math
from collections.abc import Iterable, Mapping

from asap.plans import Plan
from asap.prediction.prediction import Prediction
from asap.proposals.selection.candidate import Candidate, fit_odds, fits, kept_on_host, worth


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
            prediction,
            _score(prediction, incumbent, added.get(prediction.plan, 0.0), fits_now, nothing_runs),
            named.get(prediction.plan, ""),
            added.get(prediction.plan, 0.0),
            not fits_now and fits(prediction),
            nothing_runs,
        )
        for prediction in predictions
        if prediction.plan != incumbent
    ]
    return sorted(
        candidates, key=lambda c: (not fits(c.prediction), -round(c.score, 6), kept_on_host(c.plan), str(c.plan))
    )


def _score(
    prediction: Prediction, incumbent: Plan | None, precedent: float, fits_now: bool, nothing_runs: bool
) -> float:
    step = prediction.step_time
    if incumbent is None or prediction.relative_step_time is None:
        return math.log(fit_odds(prediction) / step.value) if step else 0.0
    return worth(prediction, precedent, not fits_now, nothing_runs)
