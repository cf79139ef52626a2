"""From a study to three proposals: enumerate, predict, rank, choose, explain."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from asap.core.errors import InsufficientEvidenceError
from asap.core.units import format_percent
from asap.diagnosis.facts import STEP_TIME_VARIATION
from asap.experiments.maxtext.reader import OF_MODEL
from asap.plans import Plan
from asap.plans.launchers import inexpressible, launch_lines, stack_of
from asap.plans.validity import unchecked
from asap.prediction.predict_study import candidate_plans, expect
from asap.prediction.prediction import Prediction
from asap.proposals.explain import confidence, impacts, reasons, trade_offs
from asap.proposals.precedent_gains import precedent_gains
from asap.proposals.proposal import Citation, Overrides, Proposal, ProposalSet, Recommendation
from asap.proposals.ranking import COUNT, Candidate, choose, expected_gain, rank
from asap.proposals.remat_alternatives import other_policies
from asap.proposals.strategy import title
from asap.study.flags import flags_for
from asap.study.study import Study

Cite = Callable[[Study, Plan], tuple[Citation, ...]]


@dataclass(frozen=True)
class RankedCandidates:
    """All candidates of a study in their order, before three are chosen."""

    study: Study
    incumbent: Prediction | None
    candidates: list[Candidate] = field(repr=False)
    left_out: tuple[str, ...] = ()
    """Why the launcher has no words for valid plans, one reason for each of them."""


def rank_candidates(study: Study, priors: Mapping[Plan, float] | None = None) -> RankedCandidates:
    """Predict and rank every valid plan, the leading ones with another rematerialisation as well.

    Args:
        study: the run.
        priors: gain in ``ln(step time)`` that precedents add to a plan; looked up by default.

    Raises:
        InsufficientEvidenceError: too little is known to predict any plan.
    """
    found = {plan: _why_not_launched(study, plan) for plan in candidate_plans(study)}
    plans = [plan for plan, reason in found.items() if reason is None]
    if study.plan is not None and study.plan not in plans:
        plans = [study.plan, *plans]
    predictions = expect(study, plans)
    incumbent = next((p for p in predictions if p.plan == study.plan), None)
    gains = precedent_gains(study, plans) if priors is None else priors
    ranked = rank(predictions, study.plan, gains)
    leading = [*([study.plan] if study.plan else []), *(candidate.plan for candidate in ranked[:COUNT])]
    if others := [plan for plan in other_policies(study, leading) if _why_not_launched(study, plan) is None]:
        ranked = rank([*predictions, *expect(study, others)], study.plan, gains)
    return RankedCandidates(study, incumbent, ranked, tuple(reason for reason in found.values() if reason))


def propose(ranked: RankedCandidates, cite: Cite, picked: Sequence[Candidate] | None = None) -> ProposalSet:
    """Three plans, explained and cited: those picked, in their order, else the best of different strategy."""
    study = ranked.study
    chosen = choose(ranked.candidates, study.plan) if picked is None else picked
    proposals = tuple(
        draft(study, candidate, number, cite(study, candidate.plan)) for number, candidate in enumerate(chosen, 1)
    )
    return ProposalSet(
        incumbent=ranked.incumbent,
        proposals=proposals,
        recommendation=recommend(proposals, len(ranked.candidates)),
        considered=len(ranked.candidates),
        warnings=_warnings(ranked, len(chosen)),
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


def draft(study: Study, candidate: Candidate, number: int, citations: tuple[Citation, ...]) -> Proposal:
    """A candidate with everything that an engineer needs to decide."""
    return Proposal(
        rank=number,
        title=title(candidate.plan, study.plan or Plan()),
        plan=candidate.plan,
        prediction=candidate.prediction,
        reasoning=reasons(study, candidate.plan),
        impact=impacts(study, candidate.prediction),
        trade_offs=trade_offs(study, candidate.plan),
        citations=citations,
        confidence=confidence(study, candidate.prediction, citations),
        overrides=_overrides(study, candidate.plan),
        score=candidate.score,
    )


def recommend(proposals: tuple[Proposal, ...], considered: int) -> Recommendation:
    """Run the first proposal first, unless its gain could not even be measured.

    Args:
        proposals: best first.
        considered: plans beside the one that runs, whether they fit or not.
    """
    if not proposals:
        reason = f"none of {considered} others is predicted to fit into HBM" if considered else "there is no other"
        statement = f"Keep what you have: of the valid plans, {reason}."
        return Recommendation(first=None, keep_incumbent=True, statement=statement)
    best = proposals[0]
    if best.prediction.relative_step_time is None:
        statement = f"Start with proposal 1 ({best.plan}): it has the lowest predicted step time."
        return Recommendation(first=1, keep_incumbent=False, statement=statement)
    gain = 1 - best.prediction.relative_step_time.value
    if gain <= 0:
        statement = f"Keep what you have: the best other plan, proposal 1 ({best.plan}), is not expected to be faster."
        return Recommendation(first=1, keep_incumbent=True, statement=statement)
    if expected_gain(best.prediction) > STEP_TIME_VARIATION:
        statement = f"Start with proposal 1 ({best.plan}): the step is expected to take {format_percent(gain)} less."
        return Recommendation(first=1, keep_incumbent=False, statement=statement)
    statement = (
        f"If you test one, test proposal 1 ({best.plan}). Its predicted gain of {format_percent(gain)} is below the "
        f"{STEP_TIME_VARIATION:.0%} by which undisturbed steps vary, so keeping what you have is as good an answer for "
        "now."
    )
    return Recommendation(first=1, keep_incumbent=True, statement=statement)


def _warnings(ranked: RankedCandidates, found: int) -> tuple[str, ...]:
    study, left_out, warnings = ranked.study, ranked.left_out, []
    if left_out:
        reason = max(set(left_out), key=lambda reason: (left_out.count(reason), reason))
        warnings.append(f"{len(left_out)} valid plan(s) are left out, such as where {reason}.")
    if found < COUNT:
        warnings.append(f"Only {found} other valid plan(s) fit under what is known, so there are not three proposals.")
    unknown = unchecked(study.constraints)
    if unknown:
        warnings.append(f"Not checked, because it is not known: {', '.join(unknown)}.")
    return tuple(warnings)


def _overrides(study: Study, plan: Plan) -> Overrides:
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
    return launch_lines(
        plan, stack, experiment.hyperparameters if _is_configured(study) else None,
        global_batch=experiment.workload.global_batch, layers=layers,
        topology=study.slice.topology if study.slice else None, of_model=of_model,
    )  # fmt: skip


def _why_not_launched(study: Study, plan: Plan) -> str | None:
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
