"""The smallest change with which a run fits: mesh, levers and settings beside every plan, searched together.

A change of one setting costs one, and so does each doubling of the mesh, and each kind of tensor in host memory. So
that little is not bought dearly, so do a step that takes a quarter longer than the fastest that fits, at the upper end
of its interval, and a risk of one in twenty to run out of memory.
"""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from itertools import combinations

import numpy as np
from pydantic import BaseModel, ConfigDict, Field

from asap.core.units import format_bytes, format_odds, format_seconds
from asap.levers.lever import Trial
from asap.levers.table import TRIALS
from asap.models import Workload
from asap.plans import Plan
from asap.prediction.memory_outcomes import outcomes_of
from asap.prediction.predict_study import expect
from asap.prediction.prediction import Prediction
from asap.proposals.launch import launcher_line, why_not_launched
from asap.proposals.reasons.explain import changed_settings
from asap.proposals.selection.candidate import LIKELY, SURE_TO_FIT, kept_on_host
from asap.proposals.selection.search import CHANGE_COST, run_of, search
from asap.stacks.launchers import setting_lines
from asap.study.study import Study

LONGER = 1.25
"""A step so much longer, at the upper end of its interval, costs one change. Judgement: which change is smallest."""
RISK = 1 - LIKELY
"""Risk to run out of memory that costs one change. Judgement: which change is smallest."""
LESS_RISK = 2
"""Times as likely to run out of memory what runs is as a change that is worth naming. Judgement: which is named."""
MOST_SETTINGS = 2
"""Settings beside the plan that are changed together. Judgement: the time of a search."""
_LOOKED_AT = 50
"""Of the smallest changes, those that are looked at for one that can be launched. Judgement: the time."""


class SmallestFit(BaseModel):
    """What to change, at least, for the run to fit. Modelled."""

    model_config = ConfigDict(frozen=True)

    plan: Plan
    settings: dict[str, str] = Field(description="beside the plan, in the words of the run's stack")
    prediction: Prediction
    statement: str = Field(description="what changes, and what it then takes")
    lines: tuple[str, ...] = Field(description="what to paste")


def smallest_fit(study: Study) -> SmallestFit | None:
    """The smallest change with which what runs fits, or may where nothing is likely to; None where there is none."""
    if (plan := study.plan) is None:
        return None
    study = replace(study, profile=None)
    now = expect(study, [plan])[0].memory
    found = [
        (changes + len(trials), trials, smallest)
        for trials in _together(study)
        if (best := _smallest(_under(study, trials), (now.probability_fits if now else None) or 0.0, bool(trials)))
        for changes, smallest in [best]
    ]
    least = _fit_of(study, *min(found, key=lambda one: one[0])[1:]) if found else None
    return least if least and (least.prediction.memory is None or least.prediction.memory.fits_host) else None


def _together(study: Study) -> Iterator[tuple[Trial, ...]]:
    """Settings that the stack has words for and whose HBM is modelled: none of them, one, or two."""
    run = run_of(study)
    known = [trial for trial in TRIALS if trial.changed(run) and trial.settings(run)]
    for count in range(MOST_SETTINGS + 1):
        yield from combinations(known, count)


def _under(study: Study, trials: tuple[Trial, ...]) -> Study:
    run = run_of(study)
    changed: Mapping[str, object] = {key: value for trial in trials for key, value in trial.changed(run).items()}
    before = study.experiment.workload
    workload = Workload.model_validate({**before.model_dump(), **changed})
    experiment = study.experiment.model_copy(update={"workload": workload})
    if not changed:
        return replace(study, experiment=experiment)
    seen = tuple(replace(one, workload=one.workload or before) for one in outcomes_of(study))
    return replace(study, experiment=experiment.model_copy(update={"observed": None}), outcomes=seen)


def _smallest(study: Study, odds: float, keeps_plan: bool) -> tuple[float, Plan] | None:
    """The cost of the cheapest plan that fits, clearly likelier than what runs, and the plan. With ``keeps_plan`` it
    may be the one that runs: then something beside it changes."""
    found = search(study, lambda meshes: np.zeros(len(meshes)))
    if found is None:
        return None
    evaluation = found.evaluation
    likelier = evaluation.valid & ((1 - evaluation.fit_odds) * LESS_RISK < 1 - odds)
    likelier[evaluation.present] &= keeps_plan
    places = np.argwhere(likelier & evaluation.fits if np.any(likelier & evaluation.fits) else likelier)
    if not len(places):
        return None
    index = tuple(places.T)
    gain = evaluation.gain[index] - evaluation.half_width(index)
    risk = np.maximum(SURE_TO_FIT - evaluation.fit_odds[index], 0) / RISK
    cost = found.effort(places) / CHANGE_COST + (gain.max() - gain) / np.log(LONGER) + risk
    rows = np.argsort(cost, kind="stable")[:_LOOKED_AT]
    plans = [found.plan(places[row]) for row in rows]
    costs = [float(cost[row]) + kept_on_host(plan) for row, plan in zip(rows, plans, strict=True)]
    cheapest = sorted(zip(costs, plans, strict=True), key=lambda one: one[0])
    return next((one for one in cheapest if why_not_launched(study, one[1]) is None), None)


def _fit_of(study: Study, trials: tuple[Trial, ...], plan: Plan) -> SmallestFit:
    assert study.plan is not None
    under, run = _under(study, trials), run_of(study)
    (found,) = expect(under, [plan])
    settings = {key: value for trial in trials for key, value in trial.settings(run).items()}
    changed = [trial.title for trial in trials]
    changed += [str(one) for one in changed_settings(plan, study.plan, study.experiment.workload)]
    if plan == study.plan:
        line = setting_lines(run.stack, settings, run.settings)
    else:
        line = launcher_line(under, plan, settings)
    return SmallestFit(
        plan=plan, settings=settings, prediction=found,
        statement=f"{', '.join(changed)}: {_takes(found)}", lines=(line,),
    )  # fmt: skip


def _takes(found: Prediction) -> str:
    assert found.memory is not None
    held = f"{format_bytes(found.memory.total.value)} of {format_bytes(found.memory.capacity_bytes)}"
    odds = found.memory.probability_fits
    likely = f", {format_odds(odds)} likely to fit" if odds is not None else ""
    step = f", at a step of {format_seconds(found.step_time.value)}" if found.step_time else ""
    return f"{held}{likely}{step} (modelled)"
