"""A model's choice of plans: the engine's candidates, or ideas of its own that the engine checks and predicts."""

from asap.agents.tools.results import LONGEST_NAME
from asap.agents.workflow.schemas import Judgement
from asap.core.errors import PlanError
from asap.core.text import plain
from asap.plans import Plan
from asap.plans.validity import violations
from asap.proposals.selection.candidate import Candidate, fits
from asap.proposals.selection.choice import COUNT, choose, is_worth
from asap.proposals.selection.ranked_candidates import RankedCandidates, evaluate
from asap.study.study import Study

HINT = "pick plans that candidates lists, or that predict predicts to be better"


def selected_candidates(ranked: RankedCandidates, judgement: Judgement) -> list[Candidate]:
    """The candidates that were picked, in the order of the picks; a plan that was not listed is evaluated.

    Raises:
        PlanError: a plan is malformed, invalid, picked twice, too large, out of the launcher's words or what runs now;
            or there are too many or too few.
    """
    known = {candidate.plan: candidate for candidate in ranked.candidates}
    study = ranked.study
    wanted = len(choose(ranked.candidates, study.plan))
    found: list[Candidate] = []
    for pick in judgement.picks[:COUNT]:
        plan = study.complete(Plan.parse(pick.plan))
        reason = _reason_against(study, plan)
        if plan in [candidate.plan for candidate in found]:
            reason = "is picked twice"
        if reason:
            raise PlanError(reason, where=plain(pick.plan, LONGEST_NAME), hint=HINT)
        candidate = known.get(plan) or evaluate(ranked, plan)
        if not fits(candidate.prediction):
            raise PlanError("does not fit into HBM", where=plain(pick.plan, LONGEST_NAME), hint=HINT)
        found.append(candidate)
    surplus = found[wanted:]
    if len(found) < wanted or len(judgement.picks) > COUNT or not all(map(is_worth, surplus)):
        raise PlanError(f"{len(judgement.picks)} plans were picked", where="picks", hint=f"pick {wanted}")
    return found


def _reason_against(study: Study, plan: Plan) -> str | None:
    if plan == study.plan:
        return "is what runs now"
    return "; ".join(violation.sentence for violation in violations(plan, study.constraints)) or None
