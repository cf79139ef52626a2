"""From ranked candidates to three proposals, explained and cited."""

from collections.abc import Callable, Sequence

from asap.core.errors import InsufficientEvidenceError
from asap.core.units import counted
from asap.evidence.memory_judgement import judge_study
from asap.plans import Plan
from asap.plans.validity import unchecked
from asap.prediction.prediction import Prediction
from asap.proposals.launch import overrides_of, start_line
from asap.proposals.proposal import Citation, Proposal, Recommendation
from asap.proposals.proposal_set import ProposalSet
from asap.proposals.ranked_candidates import RankedCandidates
from asap.proposals.reasons.explain import changed_settings, confidence, impacts, larger_batch, reasons, trade_offs
from asap.proposals.reasons.modelled_step import modelled_step
from asap.proposals.recommend import add_smallest_fit, add_trial, after_broken_rules, after_judgement, recommend
from asap.proposals.selection.candidate import Candidate
from asap.proposals.selection.strategy import title
from asap.proposals.situation import situation_of
from asap.proposals.test_worth import worth_of_test
from asap.proposals.trials import most_promising, trials_of
from asap.study.study import Study

Cite = Callable[[Study, Plan], tuple[Citation, ...]]


def propose(ranked: RankedCandidates, cite: Cite, picked: Sequence[Candidate] | None = None) -> ProposalSet:
    """Three plans, explained and cited: those picked, in their order, else the best of different strategy."""
    study = ranked.study
    chosen = ranked.chosen if picked is None else picked
    proposals = tuple(
        draft(study, candidate, number, cite(study, candidate.plan), ranked.incumbent)
        for number, candidate in enumerate(chosen, 1)
    )
    best, trials = proposals[0].prediction if proposals else None, trials_of(study)
    trial = most_promising(trials)
    situation = situation_of(study, ranked.incumbent, best, ranked.considered, trial)
    judgement = judge_study(study)
    least = ranked.smallest if judgement is None or judgement.measured_s is not None else None
    bottleneck, start = study.diagnosis.bottleneck, start_line(study)
    advice = recommend(proposals, ranked.considered, situation, bottleneck, start=start, unlaunched=ranked.unlaunched)
    advice = add_smallest_fit(add_trial(advice, trial, best, situation), least, proposals, situation, ranked.incumbent)
    return ProposalSet(
        incumbent=ranked.incumbent,
        proposals=proposals,
        recommendation=after_broken_rules(after_judgement(advice, judgement), study),
        smallest_fit=least,
        judgement=judgement,
        considered=ranked.considered,
        warnings=_warnings(ranked),
        situation=situation,
        modelled=modelled_step(study, ranked.incumbent),
        trials=trials,
    )


def no_proposals(error: InsufficientEvidenceError) -> ProposalSet:
    """An empty set, with the reason."""
    advice = f"No proposal: {error.message}{f'; {error.hint}' if error.hint else ''}."
    return ProposalSet(
        incumbent=None, proposals=(), recommendation=Recommendation(first=None, keep_incumbent=True, statement=advice)
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
    why = reasons(study, prediction, incumbent, candidate.strategy)
    return Proposal(
        rank=number,
        title=title(candidate.plan, study.plan, candidate.strategy, study.experiment.workload.experts_over),
        plan=candidate.plan,
        prediction=candidate.prediction,
        reasoning=(*larger_batch(study, prediction, incumbent), *why),
        impact=impacts(study, candidate.prediction),
        trade_offs=trade_offs(study, prediction, incumbent, candidate.strategy),
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
        alike = "is left out" if len(left_out) == 1 else "are left out for reasons such as"
        warnings.append(f"{counted(len(left_out), 'plan')} {alike}: {reason}.")
    unknown = unchecked(study.constraints)
    if unknown:
        warnings.append(f"Not checked, because it is not known: {', '.join(unknown)}.")
    return tuple(warnings)
