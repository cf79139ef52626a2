"""The plain functions of the workflow: open the experiment, check what the model picked, assemble the proposals."""

from typing import Any

from google.adk.agents.context import Context
from google.adk.tools import BaseTool, ToolContext
from pydantic import ValidationError

from asap.agents.guardrails.complaints import Complaint
from asap.agents.guardrails.transcript_plugin import TranscriptPlugin
from asap.agents.llm.procedure import ANSWER
from asap.agents.workflow.engine_proposals import cited_proposals
from asap.agents.workflow.plan_selection import selected_candidates
from asap.agents.workflow.review import RANK, Reviewer, with_prose
from asap.agents.workflow.schemas import AnalysisRequest, Assessment, Judgement
from asap.answers.inquiries import Inquiries
from asap.core.errors import InsufficientEvidenceError, PlanError, ServiceError
from asap.proposals import ProposalSet
from asap.proposals.agent_words import AgentWords
from asap.proposals.propose import no_proposals
from asap.proposals.selection.candidate import Candidate
from asap.proposals.selection.choice import choose
from asap.proposals.selection.ranked_candidates import RankedCandidates

EXPERIMENT = "experiment"
ASSESSMENT = "assessment"
PROPOSALS = "proposals"
REFUSALS = "temp:refusals"
RANK_REJECTED = "temp:rank_rejected"
WARNINGS = "temp:warnings"
MAX_CORRECTIONS = 2


class Nodes:
    """The functions over a cache of studies. Their shared state is in the session.

    Args:
        studies: where experiments are opened.
        evidence: answers of the tools.
        instructions: texts of the agents that must not be repeated.
    """

    def __init__(self, studies: Inquiries, evidence: TranscriptPlugin, instructions: tuple[str, ...]):
        self._studies, self._evidence, self._instructions = studies, evidence, instructions

    def open_experiment(self, node_input: AnalysisRequest, ctx: Context) -> dict[str, str]:
        """Open the study, so that what cannot be read stops the run before a model is asked."""
        self._studies.study(node_input.experiment)
        ctx.state[EXPERIMENT] = node_input.experiment
        ctx.state[REFUSALS] = 0
        ctx.state[RANK_REJECTED] = False
        ctx.state[WARNINGS] = []
        return {"experiment": node_input.experiment}

    def hear(self, tool: BaseTool, args: dict[str, Any], tool_context: ToolContext) -> dict[str, Any] | None:
        """Answer a choice that cannot be used with the exact complaint, at most twice; the agent goes on from there."""
        if tool.name != ANSWER or tool_context.state[REFUSALS] == MAX_CORRECTIONS:
            return None
        try:
            judgement = Judgement.model_validate(args)
            wrong = self._complaints(tool_context, judgement)
            words = "; ".join(f"{one.paragraph}: {one.what}: {one.why}" for one in wrong)
        except ValidationError:
            return None
        except PlanError as complaint:
            wrong, words = [], str(complaint)
        if not words:
            return None
        tool_context.state[REFUSALS] += 1
        return {"complaint": words, "corrections": [one.model_dump() for one in wrong]}

    def check(self, node_input: Judgement, ctx: Context) -> dict[str, Any]:
        """Remove words that still do not resolve, and note a ranking that still has no evidence.

        Raises:
            ServiceError: the model picks invalid plans for the third time.
        """
        try:
            wrong = self._complaints(ctx, node_input)
        except PlanError as complaint:
            raise ServiceError(
                f"the model keeps proposing invalid plans, the last one: {complaint}",
                where=ctx.state[EXPERIMENT],
                hint="try again, or use another --llm",
            ) from None
        verified, warnings = self._reviewer(ctx).remove_unverified_prose(node_input)
        if any(one.what == RANK for one in wrong):
            ctx.state[RANK_REJECTED] = True
            warnings.append("The agent's ranking gave no evidence, so the engine's choice stands.")
        ctx.state[WARNINGS] = warnings
        return verified.model_dump()

    def assemble(self, node_input: Judgement, ctx: Context) -> dict[str, Any]:
        """The picked plans as proposals, every figure the engine's own; returns a summary for the coordinator."""
        try:
            ranked = self._studies.candidates(ctx.state[EXPERIMENT])
            proposals = self._proposals(ctx, ranked, node_input)
        except InsufficientEvidenceError as error:
            proposals = no_proposals(error)
        warnings = (*ctx.state[WARNINGS], *proposals.warnings)
        proposals = proposals.model_copy(update={"warnings": warnings, "agents": self._assessed(ctx)})
        ctx.state[PROPOSALS] = proposals.model_dump(mode="json")
        return summary_of(proposals)

    def _assessed(self, ctx: Context) -> AgentWords | None:
        """What the analyzer wrote, without what does not resolve; ``None`` where it repeats the engine."""
        assessment = Assessment.model_validate(ctx.state[ASSESSMENT])
        diagnosis = self._studies.study(ctx.state[EXPERIMENT]).diagnosis
        if assessment.statement == diagnosis.statement:
            return None
        own = [line for line in assessment.evidence if line not in {one.statement for one in diagnosis.findings}]
        reviewer = self._reviewer(ctx)
        return AgentWords(
            statement=reviewer.verified(assessment.statement) or None,
            evidence=tuple(filter(None, map(reviewer.verified, own))),
            missing=tuple(filter(None, map(reviewer.verified, assessment.missing))),
        )

    def _proposals(self, ctx: Context, ranked: RankedCandidates, judgement: Judgement) -> ProposalSet:
        picked = self._picked(ctx, judgement)
        reasons = {candidate.plan: pick.reason for candidate, pick in zip(picked, judgement.picks, strict=True)}
        rank_rejected = ctx.state[RANK_REJECTED]
        proposals = cited_proposals(ranked, None if rank_rejected else picked)
        return with_prose(proposals, ranked, picked, reasons, "" if rank_rejected else judgement.recommendation)

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
            ranked = self._studies.candidates(experiment)
        except InsufficientEvidenceError:
            ranked = RankedCandidates(self._studies.study(experiment), None, [])
        return selected_candidates(ranked, judgement)


def summary_of(proposals: ProposalSet) -> dict[str, Any]:
    """What the coordinator gets to see."""
    return {
        "recommendation": proposals.recommendation.statement,
        "proposals": [
            {"rank": proposal.rank, "title": proposal.title, "plan": str(proposal.plan)}
            for proposal in proposals.proposals
        ],
        "warnings": list(proposals.warnings),
    }
