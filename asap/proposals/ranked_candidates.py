"""From a study to its ranked candidates: the best of each mesh and of each strategy."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from asap.core.errors import InsufficientEvidenceError, PlanError
from asap.core.units import format_seconds
from asap.evidence.anchor import current_step_time
from asap.evidence.effect import revise
from asap.evidence.fact import StatedFact
from asap.plans import Plan, Remat
from asap.plans.enumeration import Table, mesh_of
from asap.prediction.predict_study import candidate_plans, expect, keep_settings
from asap.prediction.prediction import Prediction
from asap.proposals.launch import why_not_launched
from asap.proposals.selection.candidate import LIKELY, Candidate, fit_odds, fits, rank, set_prediction
from asap.proposals.selection.choice import choose, put_first
from asap.proposals.selection.precedents import mesh_gains, precedent_gains
from asap.proposals.selection.search import search
from asap.proposals.smallest_fit import SmallestFit, smallest_fit
from asap.study.start import is_start
from asap.study.study import Study

MOST = 50
"""Candidates that are kept of each kind of list: as many as an agent may ask for."""


@dataclass(frozen=True)
class RankedCandidates:
    """All candidates of a study in their order, before three are chosen."""

    study: Study
    incumbent: Prediction | None
    candidates: list[Candidate] = field(repr=False)
    left_out: tuple[str, ...] = ()
    """Why the launcher has no words for valid plans, one reason for each of them."""
    unlaunched: str | None = None
    """Why a plan that is likely to fit is left out; ``None`` if none is."""
    smallest: SmallestFit | None = None
    """The smallest change with which what runs is likely to fit, where it is not."""
    considered: int = 0
    """Configurations that were evaluated; the candidates are the best of each mesh and of each strategy."""

    @cached_property
    def chosen(self) -> list[Candidate]:
        """Those that are proposed, best first; where what runs does not fit, the smallest change before them."""
        chosen, least = choose(self.candidates, self.study.plan), self.smallest
        if least is None or least.settings or is_start(self.study.experiment):
            return chosen
        small = next((one for one in self.candidates if one.plan == least.plan and one.makes_fit), None)
        return chosen if small is None else put_first(small, chosen)


def rank_candidates(study: Study, priors: Mapping[Plan, float] | None = None) -> RankedCandidates:
    """Evaluate every configuration, and rank the best of each mesh and of each strategy.

    Args:
        priors: gain in ``ln(step time)`` that precedents add to a plan; looked up by default.

    Raises:
        InsufficientEvidenceError: too little is known to predict any plan.
    """
    if (found := search(study, lambda meshes: _mesh_priors(study, meshes, priors))) is None:
        return _rank_meshes(study, priors)
    best = found.best_of_each_kind(), found.best_of_each_mesh()[:MOST]
    places = *best, found.single_changes(), found.present_settings()[:MOST]
    strategies: dict[Plan, str] = {}
    refused: dict[Plan, str] = {}
    gains: dict[Plan, float] = {}
    unlaunched = None
    for group in places:
        for place, kind in zip(group, found.kinds(group), strict=True):
            plan = found.plan(place)
            if plan == study.plan or plan in strategies or plan in refused:
                continue
            if (reason := why_not_launched(study, plan)) is not None:
                refused[plan] = reason
                unlaunched = unlaunched or (reason if found.evaluation.fits[tuple(place)] else None)
                continue
            strategies[plan], gains[plan] = kind, float(found.precedents[place[0]])
    assert study.plan is not None
    (incumbent,) = expect(study, [study.plan])
    smallest = None if fits(incumbent) and fit_odds(incumbent) >= LIKELY else smallest_fit(study)
    if smallest is not None and smallest.plan != study.plan:
        strategies.setdefault(smallest.plan, "")
    predictions = expect(study, list(strategies))
    candidates = rank(predictions, study.plan, gains, strategies, fits(incumbent), is_start(study.experiment))
    return RankedCandidates(
        study, incumbent, candidates, tuple(refused.values()), unlaunched, smallest, found.considered
    )


def evaluate(ranked: RankedCandidates, plan: Plan) -> Candidate:
    """A valid plan that is not among the candidates, scored as they are.

    Raises:
        PlanError: the launcher has no words for it.
    """
    study = ranked.study
    if (reason := why_not_launched(study, plan)) is not None:
        raise PlanError(reason, where=str(plan), hint="choose another")
    now, nothing_runs = ranked.incumbent, is_start(study.experiment)
    return rank(expect(study, [plan]), study.plan, fits_now=now is None or fits(now), nothing_runs=nothing_runs)[0]


def _rank_meshes(study: Study, priors: Mapping[Plan, float] | None) -> RankedCandidates:
    """Every valid mesh with the settings of the incumbent, where these or the architecture are not known."""
    reasons_against = {plan: why_not_launched(study, plan) for plan in candidate_plans(study)}
    if reasons_against and (reason := next(iter(reasons_against.values()))) and all(reasons_against.values()):
        raise InsufficientEvidenceError(reason, where=study.experiment.id, hint="give another batch, or --plan PLAN")
    plans = [_said_in_full(study, plan) for plan, reason in reasons_against.items() if reason is None]
    if not plans and study.plan is None:
        reason, hint = (
            "no plan divides batch, sequence and heads over the devices",
            "`asap analyze RUN --batch N --plan PLAN`",
        )
        raise InsufficientEvidenceError(reason, where=study.experiment.id, hint=hint)
    left_out = tuple(reason for reason in reasons_against.values() if reason)
    if study.plan is not None and study.plan not in plans:
        plans = [study.plan, *plans]
    predictions = _not_slower(study, expect(study, plans))
    if study.plan is not None and study.plan.remat is None and not any(map(fits, predictions)):
        full = study.experiment.model_copy(update={"plan": study.plan.model_copy(update={"remat": Remat.FULL})})
        found = rank_candidates(replace(study, experiment=full), priors)  # nothing holds less, so that all is searched
        incumbent, *others = expect(study, [study.plan, *(one.plan for one in found.candidates)])
        return replace(found, study=study, incumbent=incumbent, candidates=rank(others, study.plan, fits_now=False))
    incumbent = next((p for p in predictions if p.plan == study.plan), None)
    gains = precedent_gains(study, plans) if priors is None else priors
    candidates = rank(predictions, study.plan, gains, fits_now=incumbent is None or fits(incumbent))
    return RankedCandidates(study, incumbent, candidates, left_out, considered=len(plans) - (incumbent is not None))


def _not_slower(study: Study, predictions: list[Prediction]) -> list[Prediction]:
    """Predictions without plans slower than what was measured, where the plan that ran is not known; raises
    InsufficientEvidenceError where all that fit are."""
    if study.plan is not None or (measured := current_step_time(study)) is None:
        return predictions
    if (least := min((p.step_time.value for p in predictions if fits(p) and p.step_time), default=0)) >= measured.value:
        said = ("its plan is", ""), ("its plan and precision (bf16 is taken) are", " workload.precision=fp8")
        unsaid, more = said[study.experiment.workload.precision is None]
        ran = f"what ran took {format_seconds(measured.value)}, every plan as modelled at least {format_seconds(least)}"
        hint = f"`asap analyze RUN --plan PLAN{more}`"
        raise InsufficientEvidenceError(f"{ran}: {unsaid} not on record", where=study.experiment.id, hint=hint)
    return [one for one in predictions if one.step_time is None or one.step_time.value < measured.value]


def _said_in_full(study: Study, plan: Plan) -> Plan:
    """The plan with what it is predicted with, where no plan runs that says it and the launcher has words for it."""
    whole = keep_settings(study, plan) if study.plan is None else plan
    return whole if whole == plan or why_not_launched(study, whole) is None else plan


def _mesh_priors(study: Study, meshes: Table, priors: Mapping[Plan, float] | None) -> NDArray[np.float64]:
    if priors is None:
        return mesh_gains(study, meshes)
    if not priors or study.plan is None:
        return np.zeros(len(meshes))
    return np.array([priors.get(study.plan.model_copy(update={"ici": mesh_of(row)}), 0.0) for row in meshes])


@dataclass(frozen=True)
class RevisedCandidates:
    """The candidates after the evidence, and those that it excluded."""

    ranked: RankedCandidates
    excluded: dict[Plan, StatedFact]


def apply_evidence(ranked: RankedCandidates, evidence: Sequence[StatedFact]) -> RevisedCandidates:
    """Take out plans that are known not to work, and put what was measured in place of what was predicted."""
    predictions = [candidate.prediction for candidate in ranked.candidates]
    found = revise(ranked.study, ranked.incumbent, predictions, evidence)

    def revised(candidate: Candidate) -> Candidate:
        prediction = found.predictions[candidate.plan]
        if (ratio := found.measured.get(candidate.plan)) is not None:
            return replace(candidate, prediction=prediction, score=-math.log(ratio), precedent=0.0)
        changed = prediction is not candidate.prediction
        return set_prediction(candidate, prediction) if changed else candidate

    left = [revised(candidate) for candidate in ranked.candidates if candidate.plan not in found.excluded]
    left.sort(key=lambda c: (not fits(c.prediction), -c.score, str(c.plan)))
    return RevisedCandidates(replace(ranked, candidates=left), found.excluded)
