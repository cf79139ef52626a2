"""Why a plan that fits is not proposed beside the first proposal, in one clause."""

from asap.core.units import format_odds, format_percent
from asap.plans import Plan
from asap.prediction.prediction import Prediction
from asap.proposals.selection.candidate import expected_gain, fit_odds, fits, log_interval, probability_faster
from asap.proposals.selection.choice import MEASURABLE, SURER
from asap.proposals.selection.strategy import changes

_LESS_SURE = 0.005
"""Odds that differ by less are printed alike."""


def why_passed_over(prediction: Prediction, first: Prediction, incumbent: Plan | None, behind: float = 0.0) -> str:
    """What decides against a plan.

    Args:
        prediction: of a plan that is not proposed.
        first: of the first proposal.
        incumbent: the plan that runs now.
        behind: gain in ``ln(step time)`` that published runs promise of the first proposal more than of it.
    """
    if not fits(prediction):
        return f"it fits with a probability of {format_odds(fit_odds(prediction))}"
    ahead = expected_gain(prediction) - expected_gain(first)
    room, first_room = fit_odds(prediction), fit_odds(first)
    if first_room - room > _LESS_SURE and (ahead <= 0 or first_room - room > SURER):
        return f"it fits with {format_odds(room)}, proposal 1 with {format_odds(first_room)}"
    if ahead < 0:
        return f"it takes {format_percent(_longer(prediction, first))} longer than proposal 1"
    odds, first_odds = _faster(prediction), _faster(first)
    if odds is not None and first_odds is not None and first_odds - odds > _LESS_SURE:
        return f"it is faster than now with {format_odds(odds)}, proposal 1 with {format_odds(first_odds)}"
    saved = f"{format_percent(-_longer(prediction, first))} less time"
    if behind > MEASURABLE:
        return f"published runs speak for proposal 1, by {format_percent(behind)}, for {saved} modelled"
    added = _settings(prediction.plan, incumbent) - _settings(first.plan, incumbent)
    if added and ahead <= MEASURABLE * len(added):
        return f"it changes {', '.join(sorted(added))} as well, for {saved}"
    if first_room - room > _LESS_SURE:
        return f"it fits with {format_odds(room)}, proposal 1 with {format_odds(first_room)}"
    return f"it makes the changes of proposal 1 by other degrees, for {saved}"


def _longer(one: Prediction, other: Prediction) -> float:
    if one.relative_step_time is None or other.relative_step_time is None:
        return 0.0
    return one.relative_step_time.value / other.relative_step_time.value - 1


def _faster(prediction: Prediction) -> float | None:
    relative = prediction.relative_step_time
    return None if relative is None else probability_faster(*log_interval(relative))


def _settings(plan: Plan, incumbent: Plan | None) -> set[str]:
    return {change.name for change in changes(plan, incumbent)} if incumbent else set()
