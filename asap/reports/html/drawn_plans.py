"""Which of the valid plans the page draws: all of them, or one where many would lie on each other."""

from dataclasses import dataclass

import numpy as np

from asap.core.errors import AsapError
from asap.plans import Plan
from asap.prediction.evaluation import GridEvaluation
from asap.prediction.predict_study import candidate_plans, expect
from asap.prediction.prediction import Prediction
from asap.proposals.launch import why_not_launched
from asap.proposals.selection.search import search
from asap.proposals.selection.strategy import Places
from asap.reports.analysis import Analysis
from asap.study.study import Study

_COLUMNS, _ROWS = 64, 32
"""Cells of the drawing, of each of which one plan is drawn."""
_SLOWEST, _HIGHEST = 8.0, 2.5
"""Beyond so many times the fastest, or the capacity, plans are drawn at the edge or not at all."""


@dataclass(frozen=True)
class DrawnPlans:
    """Predictions of the plans that are drawn, and how many plans are valid."""

    predictions: tuple[Prediction, ...]
    valid: int

    @property
    def is_sample(self) -> bool:
        """Whether some plans are not drawn."""
        return len(self.predictions) < self.valid


def drawn_plans(analysis: Analysis, study: Study) -> DrawnPlans:
    """The plan that runs, the proposals, the Pareto front and as many others as can be told apart.

    None where too little is known to predict any, which the recommendation says.
    """
    try:
        plans, valid = _plans(study)
        found = {prediction.plan: prediction for prediction in expect(study, plans)}
    except AsapError:
        return DrawnPlans((), 0)
    known = [analysis.incumbent] if analysis.incumbent else []
    known += [proposal.prediction for proposal in analysis.proposals]
    found |= {prediction.plan: prediction for prediction in known if prediction.step_time is not None}
    return DrawnPlans(tuple(found.values()), max(valid, len(found)))


def _plans(study: Study) -> tuple[list[Plan], int]:
    searched = search(study, lambda meshes: np.zeros(len(meshes)))
    if searched is None:
        plans = candidate_plans(study)
        plans = [*([study.plan] if study.plan and study.plan not in plans else []), *plans]
        return plans, len(plans)
    capacity = study.slice.chip.device_capacity if study.slice else 0.0
    places = _told_apart(searched.evaluation, capacity)
    plans = [searched.plan(place) for place in places]
    launched = [plan for plan in plans if plan == study.plan or why_not_launched(study, plan) is None]
    return launched, int(np.count_nonzero(searched.evaluation.valid)) - len(plans) + len(launched)


def _told_apart(found: GridEvaluation, capacity: float) -> Places:
    """Places of the grid, fastest first: the Pareto front, and the fastest of each cell of the drawing."""
    places = np.argwhere(found.valid)
    places = places[np.argsort(-found.gain[tuple(places.T)], kind="stable")]
    index = tuple(places.T)
    slower, hbm, fits = found.gain[index].max() - found.gain[index], found.hbm[index], found.fits[index]
    smallest = np.minimum.accumulate(np.where(fits, hbm, np.inf))
    on_front = fits & (hbm < np.concatenate(([np.inf], smallest[:-1])))
    column = np.floor(slower / np.log(_SLOWEST) * _COLUMNS)
    row = np.floor(np.minimum(hbm / (capacity * _HIGHEST), 1.0) * _ROWS)
    cells = np.stack((column, row, fits), axis=1)
    _, first = np.unique(cells, axis=0, return_index=True)
    kept = np.zeros(len(places), dtype=bool)
    kept[first] = True
    return places[(kept | on_front) & (column < _COLUMNS)]
