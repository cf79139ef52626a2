"""The few candidates that are proposed: the best of each strategy."""

import math

from asap.levers.table import changed_levers
from asap.plans import AXES, Plan
from asap.proposals.selection.candidate import (
    LIKELY,
    Candidate,
    add_precedent,
    expected_gain,
    fit_odds,
    fits,
    kept_on_host,
)
from asap.proposals.selection.strategy import ALONE, strategy

HALF = 0.5
"""Share of the first proposal's gain that another one is expected to bring, at least. Judgement: how many are
proposed."""
QUARTER = HALF * HALF
"""Share of what counts of the first proposal: half the gain, at half the odds."""
LONGER = math.log(1.1)
"""``ln`` of how much longer than a better plan one may take where there is nothing to gain on. Judgement: how many are
proposed."""
SURER = 0.1
"""Probability by which a plan has to be likelier to fit than another to be surer. Judgement: how many are proposed."""


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
    return _time_over_odds(one) > _time_over_odds(better) + LONGER and not _is_surer(one, better)


def _is_surer(one: Candidate, better: Candidate) -> bool:
    return fit_odds(one.prediction) > fit_odds(better.prediction) + SURER


def _time_over_odds(one: Candidate) -> float:
    return -expected_gain(one.prediction) - math.log(fit_odds(one.prediction))


COUNT = 3  # proposals, as the tool promises
MEASURABLE = 0.01
"""Gain in ``ln(step time)`` below which a plan is no proposal: medians of two short runs differ by as much."""
LEAST_WORTH = MEASURABLE / 4
"""Gain after doubt below which a plan is no proposal: one that gains 1.5 % has to be faster with 58 % at least.
Judgement: which are."""
NOTABLE = -math.log(0.97)
"""Gain in ``ln(step time)`` from which on a plan is a proposal however wide its interval, with its odds beside it.
Judgement: which are."""
SAME_HBM = 0.1
"""Share of HBM within which two plans need the same. Judgement: the order of proposals."""
SAME_BET = 0.1
"""Share of what counts within which two plans are as good a bet: the one that changes less is safer to try. Judgement:
the order of proposals."""
DATA_PARALLEL = ("replica", "data")
"""Axes that take what the others leave."""


def choose(candidates: list[Candidate], incumbent: Plan | None, count: int = COUNT) -> list[Candidate]:
    """The best of each strategy, at most ``count``; what gains nothing measurable, is far behind a better one or does
    not fit is left out, and of a strategy of which some plans were compiled, what was not.

    Where there is room, the mesh of a better plan without its other changes is among them.
    """
    fitting = [candidate for candidate in candidates if fits(candidate.prediction)]
    if incumbent is None:
        return [one for one in fitting[:count] if one.score >= fitting[0].score - LONGER]
    compiled = {_strategy(candidate, incumbent) for candidate in fitting if candidate.prediction.compiled}
    fitting = [one for one in fitting if one.prediction.compiled or _strategy(one, incumbent) not in compiled]
    chosen: list[Candidate] = []
    for candidate in fitting:
        if len(chosen) < count and _is_new(candidate, chosen, incumbent):
            simplest = _simplest(candidate, fitting, incumbent)
            if _is_new(simplest, chosen, incumbent):
                chosen = [*_not_far_behind(simplest, chosen, incumbent), simplest]
    if len(chosen) < count:
        chosen += [one for one in fitting if _is_new(one, chosen, incumbent, parts=True)][:1]
    return sorted(chosen, key=lambda candidate: -candidate.score)


def put_first(small: Candidate, chosen: list[Candidate], count: int = COUNT) -> list[Candidate]:
    """A candidate before those that are chosen, without what is neither faster by something measurable nor surer."""
    least = expected_gain(small.prediction) + MEASURABLE
    others = [one for one in chosen if expected_gain(one.prediction) > least or _is_surer(one, small)]
    return [small, *others][:count]


def _is_new(candidate: Candidate, chosen: list[Candidate], incumbent: Plan, *, parts: bool = False) -> bool:
    """Whether it is worth a test beside those that are chosen; with ``parts`` a part of one of these is as well."""
    if not is_worth(candidate) or _is_far_behind(candidate, chosen, incumbent):
        return False
    of_one = not candidate.makes_fit and any(_is_part_of(candidate.plan, one.plan, incumbent) for one in chosen)
    return parts == of_one and not any(_same(candidate, better, incumbent) for better in chosen)


def _is_far_behind(candidate: Candidate, chosen: list[Candidate], incumbent: Plan) -> bool:
    """Whether the first proposal is much the better bet; where the run does not fit, any that changes no more."""
    if candidate.nothing_runs:
        return any(takes_far_longer(candidate, one) for one in chosen)
    if not candidate.makes_fit:
        return bool(chosen) and gains_far_less(candidate, chosen[0])
    count = changes_of(candidate.plan, incumbent)
    return any(changes_of(one.plan, incumbent) <= count and takes_far_longer(candidate, one) for one in chosen)


def _not_far_behind(better: Candidate, chosen: list[Candidate], incumbent: Plan) -> list[Candidate]:
    """What stays beside a plan: where the run does not fit, what counts more may still take far longer."""
    return [one for one in chosen if not (one.makes_fit and _is_far_behind(one, [better], incumbent))]


def _simplest(best: Candidate, candidates: list[Candidate], incumbent: Plan) -> Candidate:
    """Of the plans of one strategy that are as good as the best, and as sure to fit, that with the fewest changes.

    Where nothing runs yet, a plan to which the best adds changes that each bring nothing measurable.
    """
    if best.nothing_runs and (plainest := _plainest(best, candidates, incumbent)) is not best:
        return plainest
    sure = min(fit_odds(best.prediction), LIKELY) - MEASURABLE
    alike = [
        one
        for one in candidates
        if _strategy(one, incumbent) == _strategy(best, incumbent)
        and min(fit_odds(one.prediction), LIKELY) >= sure
        and (one.score >= best.score - SAME_BET * abs(best.score) or _is_as_fast(one, best))
    ]
    return min(alike, key=lambda one: (len(strategy(one.plan, incumbent)), kept_on_host(one.plan)), default=best)


def _plainest(best: Candidate, candidates: list[Candidate], incumbent: Plan) -> Candidate:
    """The fastest plan to which another adds too little, again and again; the plan itself where there is none."""
    while plainer := [one for one in candidates if _adds_to(best, one, incumbent)]:
        best = max(plainer, key=lambda one: expected_gain(one.prediction))
    return best


def _is_as_fast(one: Candidate, best: Candidate) -> bool:
    slower = expected_gain(best.prediction) - expected_gain(one.prediction)
    return max(slower, best.score - one.score) <= MEASURABLE


def is_worth(candidate: Candidate) -> bool:
    """Whether the gain could be measured, and counts; by ratios of a profile, which are wide, whether there is one."""
    if candidate.makes_fit or (found := candidate.prediction).relative_step_time is None:
        return True
    gain = float(add_precedent(expected_gain(found), candidate.precedent, fit_odds(found)))
    if found.method == "profile_ratios":
        return gain > 0
    return gain >= NOTABLE or (gain >= MEASURABLE and candidate.score >= LEAST_WORTH)


def changes_of(plan: Plan, incumbent: Plan) -> int:
    """Levers that differ; a mesh counts as one."""
    return len(changed_levers(plan, incumbent)) + ((plan.ici, plan.dcn) != (incumbent.ici, incumbent.dcn))


def _same(one: Candidate, better: Candidate, incumbent: Plan) -> bool:
    """Whether two plans are one idea: of one strategy, apart by degrees alone, or by what moves nothing measurable."""
    if _moves_alike(one, better, incumbent):
        return True
    mine, others = _strategy(one, incumbent), _strategy(better, incumbent)
    if mine.removesuffix(ALONE) == others.removesuffix(ALONE):
        same = mine == others and not _is_surer(one, better)
        return same or not mine.endswith(ALONE) or _adds_to(one, better, incumbent)
    if one.makes_fit:
        contains = set(mine.split("+")) > set(others.split("+"))
        return contains and expected_gain(one.prediction) < expected_gain(better.prediction) + MEASURABLE
    if one.prediction.method == "profile_ratios":
        return False
    if _adds_to(one, better, incumbent):
        return True
    apart = abs(expected_gain(better.prediction) - expected_gain(one.prediction)), abs(_hbm(one) - _hbm(better))
    return not changed_levers(one.plan, better.plan) and apart[0] < MEASURABLE and apart[1] < SAME_HBM


def _adds_to(one: Candidate, better: Candidate, incumbent: Plan) -> bool:
    """Whether a plan changes more than a better one does, without being surer to fit, or faster by something measurable
    for each further change; data parallelism takes what the others leave, and is no change of its own."""
    mine, others = _moves(one.plan, incumbent), _moves(better.plan, incumbent)
    brought = expected_gain(one.prediction) - expected_gain(better.prediction)
    return mine > others and brought <= MEASURABLE * len(mine - others) and not _is_surer(one, better)


def _moves_alike(one: Candidate, better: Candidate, incumbent: Plan) -> bool:
    """Whether two plans move the same axes and levers the same way, by other degrees, and the worse one is not surer to
    fit. Ratios of a profile are too rough to tell degrees apart."""
    mine = _moves(one.plan, incumbent)
    told = one.prediction.method != "profile_ratios" and any(axis in AXES for axis, _ in mine)
    return told and mine == _moves(better.plan, incumbent) and not _is_surer(one, better)


def _moves(plan: Plan, incumbent: Plan) -> frozenset[tuple[str, str]]:
    return frozenset(change for change in strategy(plan, incumbent) if change[0] not in DATA_PARALLEL)


def _is_part_of(plan: Plan, better: Plan, incumbent: Plan) -> bool:
    """Whether a plan has the other mesh of a better one, and no change that the better one lacks."""
    if (plan.ici, plan.dcn) != (better.ici, better.dcn) or (plan.ici, plan.dcn) == (incumbent.ici, incumbent.dcn):
        return False
    return set(strategy(plan, incumbent)) <= set(strategy(better, incumbent))


def _strategy(candidate: Candidate, incumbent: Plan) -> str:
    return candidate.strategy or ", ".join(sorted(f"{way} {what}" for what, way in strategy(candidate.plan, incumbent)))


def _hbm(candidate: Candidate) -> float:
    memory = candidate.prediction.memory
    return memory.total.value / memory.capacity_bytes if memory else 0.0
