"""A model's choice of plans, looked up among the engine's candidates. Only the names are the model's."""

from collections.abc import Sequence

from asap.agents.tools.results import LONGEST_NAME
from asap.agents.workflow.schemas import Judgement
from asap.core.errors import PlanError
from asap.core.text import plain
from asap.plans import Plan
from asap.plans.validity import violations
from asap.proposals.ranking import Candidate, choose, fits
from asap.study.study import Study


def selected_candidates(study: Study, candidates: Sequence[Candidate], judgement: Judgement) -> list[Candidate]:
    """The candidates that were picked, in the order of the picks.

    Raises:
        PlanError: a plan is malformed, invalid, picked twice, too large, unknown or what runs now; or there are too
            many or too few.
    """
    known = {candidate.plan: candidate for candidate in candidates}
    wanted = len(choose(list(candidates), study.plan))
    if len(judgement.picks) != wanted:
        raise PlanError(f"{len(judgement.picks)} plans were picked", where="picks", hint=f"pick {wanted}")
    found: list[Candidate] = []
    for pick in judgement.picks:
        plan = Plan.parse(pick.plan).completed_by(study.plan)
        reason = _reason_against(study, plan, known)
        if plan in [candidate.plan for candidate in found]:
            reason = "is picked twice"
        if reason:
            where = plain(pick.plan, LONGEST_NAME)
            raise PlanError(reason, where=where, hint="pick plans that list_candidates ranks")
        found.append(known[plan])
    return found


def _reason_against(study: Study, plan: Plan, known: dict[Plan, Candidate]) -> str | None:
    if plan == study.plan:
        return "is what runs now"
    broken = violations(plan, study.constraints)
    if broken:
        return "; ".join(violation.sentence for violation in broken)
    if plan not in known:
        return "is not among the candidates of the engine"
    return None if fits(known[plan].prediction) else "does not fit into HBM"
