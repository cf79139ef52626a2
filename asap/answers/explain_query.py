"""Why a plan is proposed, or why not."""

from typing import Literal

from pydantic import Field

from asap.answers.figure import Answer, Figure, PlanName, Query, change, subject_of
from asap.answers.inquiry import Inquiry
from asap.answers.plan_queries import changes_of
from asap.answers.plan_row import PlanRow, notes_of, plan_row, step_over
from asap.core.errors import PlanError
from asap.plans import Plan
from asap.plans.validity import violations
from asap.proposals.launch import why_not_launched
from asap.proposals.proposal import ChangedSetting, Citation
from asap.proposals.ranked_candidates import evaluate
from asap.proposals.reasons.explain import cite, reasons, trade_offs
from asap.proposals.selection.candidate import Candidate, fits
from asap.proposals.selection.passed_over import why_passed_over

Standing = Literal[
    "runs now",
    "proposed",
    "not among the best",
    "ruled out",
    "breaks a rule",
    "no words in the launcher",
    "not fitting",
]


class ExplainAnswer(Answer):
    """Where a plan stands, and why."""

    standing: Standing
    because: tuple[str, ...] = Field(default=(), description="what decides where it stands")
    place_among_all: int | None = Field(description="of what is not proposed, in the engine's order of all candidates")
    plan: PlanRow | None
    behind_first: Figure | None = Field(default=None, description="step time against the first proposal")
    change: tuple[ChangedSetting, ...] = ()
    reasons: tuple[str, ...] = ()
    trade_offs: tuple[str, ...] = ()
    citations: tuple[Citation, ...] = ()
    notes: tuple[str, ...] = ()


class Explain(Query):
    """Explain a plan: why it is proposed, or why not; what it changes, what it costs, what it rests on, and what it
    would lose against the first proposal."""

    plan: PlanName = "1"

    def answer(self, inquiry: Inquiry) -> ExplainAnswer:
        """Of any plan, also one that cannot run."""
        study = inquiry.study
        try:
            judged = inquiry.judgement
            kept = "plan" not in self.model_fields_set and (not inquiry.order or (judged and judged.is_finding))
            plan = inquiry.now if kept else inquiry.plan(self.plan)
        except PlanError:
            broken = violations(study.complete(Plan.parse(self.plan)), study.constraints)
            if not broken:
                raise
            because = tuple(one.sentence for one in broken)
            return ExplainAnswer(standing="breaks a rule", because=because, place_among_all=None, plan=None)
        if "microbatches" not in self.plan:
            plan = _best_microbatches(inquiry, plan)
        found, first = inquiry.candidate(plan), next(iter(inquiry.proposals), None)
        standing, because, candidate = _standing(inquiry, plan, found)
        (prediction,) = inquiry.predictions([plan])
        main = candidate.strategy if candidate else ""
        is_now = plan == study.plan
        behind = step_over(inquiry, first.prediction, prediction) if first and first.plan != plan else None
        return ExplainAnswer(
            standing=standing,
            because=because,
            place_among_all=found[0] if found and standing != "proposed" else None,
            plan=plan_row(inquiry, prediction),
            behind_first=change(subject_of(plan, study.plan), behind, "vs_first"),
            change=changes_of(inquiry, plan),
            reasons=() if is_now else reasons(study, prediction, inquiry.incumbent, main),
            trade_offs=() if is_now else trade_offs(study, prediction, inquiry.incumbent, main),
            citations=() if is_now else cite(study, plan),
            notes=notes_of([prediction]),
        )


def _best_microbatches(inquiry: Inquiry, plan: Plan) -> Plan:
    """The plan, or the same with as many microbatches as run now where that fits and is faster."""
    now = inquiry.study.plan
    if now is None or now.microbatches in (None, plan.microbatches):
        return plan
    other = plan.model_copy(update={"microbatches": now.microbatches})
    if violations(other, inquiry.study.constraints):
        return plan
    as_kept, as_now = inquiry.predictions([plan, other])
    kept, same = as_kept.step_time, as_now.step_time
    return other if fits(as_now) and kept and same and same.value < kept.value else plan


def _standing(
    inquiry: Inquiry, plan: Plan, found: tuple[int, Candidate] | None
) -> tuple[Standing, tuple[str, ...], Candidate | None]:
    revised = inquiry.revised
    if plan == inquiry.study.plan:
        return "runs now", (inquiry.advice,) if inquiry.advice else (), None
    if plan in revised.excluded:
        return "ruled out", (str(revised.excluded[plan]),), found[1] if found else None
    if (reason := why_not_launched(inquiry.study, plan)) is not None:
        return "no words in the launcher", (reason,), None
    candidate = found[1] if found else evaluate(revised.ranked, plan)
    if plan in inquiry.order:
        return "proposed", (), candidate
    first = next(iter(inquiry.proposals), None)
    because = ()
    if first is not None:
        behind = first.precedent - candidate.precedent
        because = (why_passed_over(candidate.prediction, first.prediction, inquiry.study.plan, behind),)
    return ("not among the best" if fits(candidate.prediction) else "not fitting"), because, candidate
