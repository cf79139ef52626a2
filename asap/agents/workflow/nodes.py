"""The plain functions of the workflow: open the experiment, check what the model picked, assemble the proposals."""

from typing import Any

from google.adk.agents.context import Context
from google.adk.events.event import Event
from google.adk.events.event_actions import EventActions

from asap.agents.guardrails.guard import Complaint
from asap.agents.guardrails.transcript_plugin import TranscriptPlugin
from asap.agents.tools.study_cache import StudyCache
from asap.agents.workflow.engine_proposals import cited_proposals
from asap.agents.workflow.plan_selection import selected_candidates
from asap.agents.workflow.review import RANK, Reviewer, with_prose
from asap.agents.workflow.schemas import AnalysisRequest, Judgement
from asap.core.errors import InsufficientEvidenceError, PlanError, ServiceError
from asap.proposals import ProposalSet
from asap.proposals.propose import RankedCandidates, no_proposals
from asap.proposals.ranking import Candidate, choose

EXPERIMENT = "experiment"
ASSESSMENT = "assessment"
PROPOSALS = "proposals"
REFUSALS = "temp:refusals"
RANK_REJECTED = "temp:rank_rejected"
WARNINGS = "temp:warnings"
REFUSED, ACCEPTED = "refused", "accepted"
MAX_CORRECTIONS = 2


class Nodes:
    """The functions over a cache of studies. Their shared state is in the session.

    Args:
        studies: where experiments are opened.
        evidence: answers of the tools.
        instructions: texts of the agents that must not be repeated.
    """

    def __init__(self, studies: StudyCache, evidence: TranscriptPlugin, instructions: tuple[str, ...]):
        self._studies, self._evidence, self._instructions = studies, evidence, instructions

    def open_experiment(self, node_input: AnalysisRequest, ctx: Context) -> dict[str, str]:
        """Open the study, so that what cannot be read stops the run before a model is asked."""
        self._studies.study(node_input.experiment)
        ctx.state[EXPERIMENT] = node_input.experiment
        ctx.state[REFUSALS] = 0
        ctx.state[RANK_REJECTED] = False
        ctx.state[WARNINGS] = []
        return {"experiment": node_input.experiment}

    def check(self, node_input: Judgement, ctx: Context) -> Event:
        """Send invalid picks and unverified words back with the exact complaint, at most twice.

        Raises:
            ServiceError: the model picks invalid plans for the third time.
        """
        last = ctx.state[REFUSALS] == MAX_CORRECTIONS
        try:
            wrong = self._complaints(ctx, node_input)
        except PlanError as complaint:
            if last:
                message = f"the model keeps proposing invalid plans, the last one: {complaint}"
                raise ServiceError(
                    message, where=ctx.state[EXPERIMENT], hint="try again, or use another --model"
                ) from None
            return _refuse(ctx, node_input, str(complaint), [])
        if wrong and not last:
            words = "; ".join(f"{one.paragraph}: {one.what}: {one.why}" for one in wrong)
            return _refuse(ctx, node_input, words, wrong)
        verified, warnings = self._reviewer(ctx).remove_unverified_prose(node_input)
        if any(one.what == RANK for one in wrong):
            ctx.state[RANK_REJECTED] = True
            warnings.append("The agent's ranking gave no evidence, so the engine's choice stands.")
        ctx.state[WARNINGS] = warnings
        return _routed(ACCEPTED, verified.model_dump())

    def assemble(self, node_input: Judgement, ctx: Context) -> dict[str, Any]:
        """The picked plans as proposals, every figure the engine's own; returns a summary for the coordinator."""
        try:
            ranked = self._studies.candidates(ctx.state[EXPERIMENT])
            proposals = self._proposals(ctx, ranked, node_input)
        except InsufficientEvidenceError as error:
            proposals = no_proposals(error)
        proposals = proposals.model_copy(update={"warnings": (*ctx.state[WARNINGS], *proposals.warnings)})
        ctx.state[PROPOSALS] = proposals.model_dump(mode="json")
        return _summary(proposals)

    def _proposals(self, ctx: Context, ranked: RankedCandidates, judgement: Judgement) -> ProposalSet:
        picked = self._picked(ctx, judgement)
        reasons = {candidate.plan: pick.reason for candidate, pick in zip(picked, judgement.picks, strict=True)}
        rank_rejected = ctx.state[RANK_REJECTED]
        proposals = cited_proposals(ranked, None if rank_rejected else picked)
        return with_prose(proposals, ranked, reasons, "" if rank_rejected else judgement.recommendation)

    def _complaints(self, ctx: Context, judgement: Judgement) -> list[Complaint]:
        picked = self._picked(ctx, judgement)
        if not picked:
            return []
        ranked = self._studies.candidates(ctx.state[EXPERIMENT])
        engine = choose(ranked.candidates, ranked.study.plan)
        return self._reviewer(ctx).complaints(judgement, picked, engine)

    def _reviewer(self, ctx: Context) -> Reviewer:
        return Reviewer(self._evidence.transcript(ctx.session.id), self._instructions)

    def _picked(self, ctx: Context, judgement: Judgement) -> list[Candidate]:
        experiment = ctx.state[EXPERIMENT]
        try:
            candidates = self._studies.candidates(experiment).candidates
        except InsufficientEvidenceError:
            candidates = []
        return selected_candidates(self._studies.study(experiment), candidates, judgement)


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
