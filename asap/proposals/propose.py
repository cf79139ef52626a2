"""From a study to three proposals: enumerate, predict, rank, choose, explain."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from asap.core.errors import InsufficientEvidenceError, PlanError
from asap.experiments.maxtext.reader import OF_MODEL
from asap.plans import Plan
from asap.plans.enumeration import Table, mesh_of
from asap.plans.launchers import inexpressible, launch_lines, settings_of, stack_of
from asap.plans.validity import unchecked
from asap.prediction.predict_study import candidate_plans, expect
from asap.prediction.prediction import Prediction
from asap.proposals.changed_settings import changed_settings
from asap.proposals.explain import confidence, impacts, larger_batch, reasons, trade_offs
from asap.proposals.modelled_step import modelled_step
from asap.proposals.precedent_gains import mesh_gains, precedent_gains
from asap.proposals.proposal import Citation, Overrides, Proposal, Recommendation
from asap.proposals.proposal_set import ProposalSet
from asap.proposals.ranking import Candidate, choose, fits, rank
from asap.proposals.recommend import recommend
from asap.proposals.search import search
from asap.proposals.situation import situation_of
from asap.proposals.strategy import title
from asap.proposals.test_worth import worth_of_test
from asap.proposals.trials import trials_of
from asap.study.flags import flags_for
from asap.study.study import Study

MOST = 50
"""Candidates that are kept of each kind of list: as many as an agent may ask for."""

Cite = Callable[[Study, Plan], tuple[Citation, ...]]


@dataclass(frozen=True)
class RankedCandidates:
    """All candidates of a study in their order, before three are chosen."""

    study: Study
    incumbent: Prediction | None
    candidates: list[Candidate] = field(repr=False)
    left_out: tuple[str, ...] = ()
    """Why the launcher has no words for valid plans, one reason for each of them."""
    considered: int = 0
    """Configurations that were evaluated; the candidates are the best of each mesh and of each strategy."""
    compiled_flags: str | None = None
    """What the compiler makes of flags that the run misses; ``None`` where it was not asked or none is missing."""


def rank_candidates(study: Study, priors: Mapping[Plan, float] | None = None) -> RankedCandidates:
    """Evaluate every configuration, and rank the best of each mesh and of each strategy.

    Args:
        study: the run.
        priors: gain in ``ln(step time)`` that precedents add to a plan; looked up by default.

    Raises:
        InsufficientEvidenceError: too little is known to predict any plan.
    """
    found = search(study, lambda meshes: _mesh_priors(study, meshes, priors))
    if found is None:
        return _rank_meshes(study, priors)
    best = found.best_of_each_kind(), found.best_of_each_mesh()[:MOST]
    places = *best, found.single_changes(), found.present_settings()[:MOST]
    strategies: dict[Plan, str] = {}
    refused: dict[Plan, str] = {}
    gains: dict[Plan, float] = {}
    for group in places:
        for place, kind in zip(group, found.kinds(group), strict=True):
            plan = found.plan(place)
            if plan == study.plan or plan in strategies or plan in refused:
                continue
            if (reason := why_not_launched(study, plan)) is not None:
                refused[plan] = reason
                continue
            strategies[plan], gains[plan] = kind, float(found.precedents[place[0]])
    assert study.plan is not None
    incumbent, *predictions = expect(study, [study.plan, *strategies])
    candidates = rank(predictions, study.plan, gains, strategies, fits(incumbent))
    return RankedCandidates(study, incumbent, candidates, tuple(refused.values()), found.considered)


def evaluate(ranked: RankedCandidates, plan: Plan) -> Candidate:
    """A valid plan that is not among the candidates, scored as they are.

    Raises:
        PlanError: the launcher has no words for it.
    """
    study = ranked.study
    if (reason := why_not_launched(study, plan)) is not None:
        raise PlanError(reason, where=str(plan), hint="choose another")
    fits_now = ranked.incumbent is None or fits(ranked.incumbent)
    return rank(expect(study, [plan]), study.plan, fits_now=fits_now)[0]


def _rank_meshes(study: Study, priors: Mapping[Plan, float] | None) -> RankedCandidates:
    """Every valid mesh with the settings of the incumbent, where these or the architecture are not known."""
    reasons_against = {plan: why_not_launched(study, plan) for plan in candidate_plans(study)}
    plans = [plan for plan, reason in reasons_against.items() if reason is None]
    left_out = tuple(reason for reason in reasons_against.values() if reason)
    if study.plan is not None and study.plan not in plans:
        plans = [study.plan, *plans]
    predictions = expect(study, plans)
    incumbent = next((p for p in predictions if p.plan == study.plan), None)
    gains = precedent_gains(study, plans) if priors is None else priors
    candidates = rank(predictions, study.plan, gains, fits_now=incumbent is None or fits(incumbent))
    return RankedCandidates(study, incumbent, candidates, left_out, len(candidates))


def _mesh_priors(study: Study, meshes: Table, priors: Mapping[Plan, float] | None) -> NDArray[np.float64]:
    if priors is None:
        return mesh_gains(study, meshes)
    if not priors or study.plan is None:
        return np.zeros(len(meshes))
    return np.array([priors.get(study.plan.model_copy(update={"ici": mesh_of(row)}), 0.0) for row in meshes])


def propose(ranked: RankedCandidates, cite: Cite, picked: Sequence[Candidate] | None = None) -> ProposalSet:
    """Three plans, explained and cited: those picked, in their order, else the best of different strategy."""
    study = ranked.study
    chosen = choose(ranked.candidates, study.plan) if picked is None else picked
    proposals = tuple(
        draft(study, candidate, number, cite(study, candidate.plan), ranked.incumbent)
        for number, candidate in enumerate(chosen, 1)
    )
    situation = situation_of(study, ranked.incumbent, proposals, ranked.considered)
    return ProposalSet(
        incumbent=ranked.incumbent,
        proposals=proposals,
        recommendation=recommend(proposals, ranked.considered, situation, study.diagnosis.bottleneck),
        considered=ranked.considered,
        warnings=_warnings(ranked),
        situation=situation,
        modelled=modelled_step(study, ranked.incumbent),
        trials=trials_of(study),
        compiled_flags=ranked.compiled_flags,
    )


def no_proposals(error: InsufficientEvidenceError) -> ProposalSet:
    """An empty set, with the reason."""
    advice = f"; {error.hint}" if error.hint else ""
    statement = f"No proposal: {error.message}{advice}."
    return ProposalSet(
        incumbent=None,
        proposals=(),
        recommendation=Recommendation(first=None, keep_incumbent=True, statement=statement),
    )


def draft(
    study: Study,
    candidate: Candidate,
    number: int,
    citations: tuple[Citation, ...],
    incumbent: Prediction | None = None,
) -> Proposal:
    """A candidate with everything that an engineer needs to decide."""
    prediction, now = candidate.prediction, incumbent.step_time if incumbent else None
    return Proposal(
        rank=number,
        title=title(candidate.plan, study.plan or Plan(), candidate.strategy),
        plan=candidate.plan,
        prediction=candidate.prediction,
        reasoning=(*larger_batch(study, prediction, incumbent), *reasons(study, candidate.plan, candidate.strategy)),
        impact=impacts(study, candidate.prediction),
        trade_offs=trade_offs(study, candidate.plan, candidate.strategy),
        citations=citations,
        confidence=confidence(study, candidate.prediction, citations),
        overrides=overrides_of(study, candidate.plan),
        score=candidate.score,
        strategy=candidate.strategy,
        settings=changed_settings(candidate.plan, study.plan, study.experiment.workload) if study.plan else (),
        precedent=candidate.precedent,
        makes_fit=candidate.makes_fit,
        test_worth=worth_of_test(study, now, prediction.relative_step_time, prediction.step_time),
    )


def _warnings(ranked: RankedCandidates) -> tuple[str, ...]:
    study, left_out, warnings = ranked.study, ranked.left_out, []
    if left_out:
        reason = max(set(left_out), key=lambda reason: (left_out.count(reason), reason))
        warnings.append(f"{len(left_out)} valid plan(s) are left out, such as where {reason}.")
    unknown = unchecked(study.constraints)
    if unknown:
        warnings.append(f"Not checked, because it is not known: {', '.join(unknown)}.")
    return tuple(warnings)


def overrides_of(study: Study, plan: Plan) -> Overrides:
    """What to paste for the run's own launcher to run a plan; raises like :func:`launcher_line`."""
    stack = stack_of(study.experiment.workload.framework)
    return Overrides.of(stack, launcher_line(study, plan), flags_for(study, plan).exports)


def launcher_line(study: Study, plan: Plan) -> str:
    """What to change for the run's own launcher to run a plan.

    Raises:
        PlanError: the launcher has no words for it.
    """
    experiment = study.experiment
    stack = stack_of(experiment.workload.framework)
    of_model = [key.removeprefix(OF_MODEL) for key in experiment.provenance if key.startswith(OF_MODEL)]
    layers = experiment.workload.pipelined_layers or (experiment.model.layers if experiment.model else None)
    configured = _is_configured(study)
    batch, topology = experiment.workload.global_batch, study.slice.topology if study.slice else None
    current = experiment.hyperparameters if configured else None
    if current is None and study.plan is not None:
        batch = batch if plan.microbatches else None
        current = settings_of(study.plan, stack, global_batch=batch, layers=layers, topology=topology)
    return launch_lines(
        plan, stack, current or None, global_batch=batch, layers=layers, topology=topology, of_model=of_model
    )


def why_not_launched(study: Study, plan: Plan) -> str | None:
    """Why the run's own launcher has no words for a plan; ``None`` if it has."""
    experiment = study.experiment
    layers = experiment.workload.pipelined_layers or (experiment.model.layers if experiment.model else None)
    stack = stack_of(experiment.workload.framework)
    if stack == "maxtext" and not _is_configured(study):
        return None
    return inexpressible(plan, stack, experiment.hyperparameters, experiment.workload.global_batch, layers)


def _is_configured(study: Study) -> bool:
    """Whether the record has settings of the stack that the line to paste goes on top of."""
    experiment = study.experiment
    of_maxtext = experiment.workload.framework == "MaxText"
    return bool(experiment.hyperparameters) and (of_maxtext or stack_of(experiment.workload.framework) != "maxtext")
