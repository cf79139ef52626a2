"""The plain functions of the workflow: open the experiment, check what the model picked, assemble the proposals."""

from typing import Any

from google.adk.agents.context import Context
from google.adk.events.event import Event
from google.adk.events.event_actions import EventActions

from asap.agents.desk import Desk
from asap.agents.engine import cited
from asap.agents.evidence import Evidence
from asap.agents.guard import Complaint
from asap.agents.picks import look_up
from asap.agents.review import THE_RANK, Reviewer, with_words
from asap.agents.schemas import AnalysisRequest, Judgement
from asap.core.errors import InsufficientEvidenceError, PlanError, ServiceError
from asap.proposals import ProposalSet
from asap.proposals.propose import Field, nothing
from asap.proposals.ranking import Candidate, choose

EXPERIMENT = "experiment"
ASSESSMENT = "assessment"
PROPOSALS = "proposals"
REFUSALS = "temp:refusals"
UNREASONED = "temp:unreasoned"
STRUCK = "temp:struck"
REFUSED, ACCEPTED = "refused", "accepted"
LAST_REFUSAL = 2


class Nodes:
    """The functions over a desk. State that they share lies in the session.

    Args:
        desk: where studies are opened.
        evidence: what the tools have said.
        instructions: texts of the agents that must not be repeated.
    """

    def __init__(self, desk: Desk, evidence: Evidence, instructions: tuple[str, ...]):
        self._desk, self._evidence, self._instructions = desk, evidence, instructions

    def open_experiment(self, node_input: AnalysisRequest, ctx: Context) -> dict[str, str]:
        """Open the study, so that what cannot be read stops the run before a model is asked."""
        self._desk.study(node_input.experiment)
        ctx.state[EXPERIMENT] = node_input.experiment
        ctx.state[REFUSALS] = 0
        ctx.state[UNREASONED] = False
        ctx.state[STRUCK] = []
        return {"experiment": node_input.experiment}

    def check(self, node_input: Judgement, ctx: Context) -> Event:
        """Send wrong picks and words that do not resolve back with the exact complaint, at most twice.

        Raises:
            ServiceError: the model picks wrong plans for the third time.
        """
        last = ctx.state[REFUSALS] == LAST_REFUSAL
        try:
            wrong = self._complaints(ctx, node_input)
        except PlanError as complaint:
            if last:
                message = f"the model keeps proposing plans that cannot be used, last: {complaint}"
                raise ServiceError(message, where=ctx.state[EXPERIMENT], hint="try again or another --model") from None
            return _refuse(ctx, node_input, str(complaint), [])
        if wrong and not last:
            words = "; ".join(f"{one.paragraph}: {one.what}: {one.why}" for one in wrong)
            return _refuse(ctx, node_input, words, wrong)
        settled, struck = self._reviewer(ctx).settle(node_input)
        if any(one.what == THE_RANK for one in wrong):
            ctx.state[UNREASONED] = True
            struck.append("The agent's own ranking names no evidence, so the engine's choice stands.")
        ctx.state[STRUCK] = struck
        return _routed(ACCEPTED, settled.model_dump())

    def assemble(self, node_input: Judgement, ctx: Context) -> dict[str, Any]:
        """The picked plans as proposals, every figure the engine's own; returns what the coordinator is told."""
        try:
            survey = self._desk.survey(ctx.state[EXPERIMENT])
            proposals = self._proposals(ctx, survey, node_input)
        except InsufficientEvidenceError as error:
            proposals = nothing(error)
        proposals = proposals.model_copy(update={"warnings": (*ctx.state[STRUCK], *proposals.warnings)})
        ctx.state[PROPOSALS] = proposals.model_dump(mode="json")
        return _summary(proposals)

    def _proposals(self, ctx: Context, survey: Field, judgement: Judgement) -> ProposalSet:
        picked = self._picked(ctx, judgement)
        reasons = {candidate.plan: pick.reason for candidate, pick in zip(picked, judgement.picks, strict=True)}
        unreasoned = ctx.state[UNREASONED]
        proposals = cited(survey, None if unreasoned else picked)
        return with_words(proposals, survey, reasons, "" if unreasoned else judgement.recommendation)

    def _complaints(self, ctx: Context, judgement: Judgement) -> list[Complaint]:
        picked = self._picked(ctx, judgement)
        if not picked:
            return []
        survey = self._desk.survey(ctx.state[EXPERIMENT])
        engine = choose(survey.candidates, survey.study.plan)
        return self._reviewer(ctx).complaints(judgement, picked, engine)

    def _reviewer(self, ctx: Context) -> Reviewer:
        return Reviewer(self._evidence.told(ctx.session.id), self._instructions)

    def _picked(self, ctx: Context, judgement: Judgement) -> list[Candidate]:
        experiment = ctx.state[EXPERIMENT]
        try:
            candidates = self._desk.survey(experiment).candidates
        except InsufficientEvidenceError:
            candidates = []
        return look_up(self._desk.study(experiment), candidates, judgement)


def _refuse(ctx: Context, judgement: Judgement, complaint: str, wrong: list[Complaint]) -> Event:
    ctx.state[REFUSALS] += 1
    sent_back = {
        **ctx.state.get(ASSESSMENT, {}),
        "experiment": ctx.state[EXPERIMENT],
        "refused": [pick.plan for pick in judgement.picks],
        "complaint": complaint,
        "corrections": [one.model_dump() for one in wrong],
    }
    return _routed(REFUSED, sent_back)


def _routed(route: str, output: dict[str, Any]) -> Event:
    return Event(output=output, actions=EventActions(route=route))


def _summary(proposals: ProposalSet) -> dict[str, Any]:
    return {
        "recommendation": proposals.recommendation.statement,
        "proposals": [
            {"rank": proposal.rank, "title": proposal.title, "plan": str(proposal.plan)}
            for proposal in proposals.proposals
        ],
        "warnings": list(proposals.warnings),
    }
