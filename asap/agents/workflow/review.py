"""A judgement held against the engine: what goes back to the model, and what is made of it in the end."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import zip_longest

from asap.agents.guardrails.complaints import Complaint, complaints, mentions_any, remove_unverified, sanitize
from asap.agents.guardrails.grounding import GroundedValue, known_values
from asap.agents.guardrails.transcript import Transcript
from asap.agents.workflow.schemas import Judgement
from asap.core.provenance import Provenance, Quantity
from asap.plans import Plan
from asap.prediction.prediction import Prediction
from asap.proposals import Proposal, ProposalSet
from asap.proposals.selection.candidate import Candidate
from asap.proposals.selection.ranked_candidates import RankedCandidates

RECOMMENDATION = "recommendation"
RANK = "the rank"
LESS_IS_BETTER = ("step_time", "relative_step_time", "communication", "memory")


@dataclass(frozen=True)
class Reviewer:
    """Checks a judgement.

    Args:
        transcript: answers of the tools in the session.
        instructions: texts of the agents that must not be repeated.
    """

    transcript: Transcript
    instructions: tuple[str, ...]

    def complaints(
        self, judgement: Judgement, picked: Sequence[Candidate], engine: Sequence[Candidate]
    ) -> list[Complaint]:
        """Everything that is wrong with the words, and places taken from the engine's choice without evidence."""
        found = []
        for pick, candidate, instead in zip_longest(judgement.picks, picked, engine[: len(picked)]):
            name, reason = f"reason of {candidate.plan}", sanitize(pick.reason)
            found += complaints(name, reason, self.transcript, self.instructions, str(candidate.plan))
            if instead is not None and candidate.plan != instead.plan:
                found += self._rank_complaints(name, reason, candidate.prediction, instead.prediction)
        return found + complaints(
            RECOMMENDATION, sanitize(judgement.recommendation), self.transcript, self.instructions
        )

    def _rank_complaints(self, name: str, reason: str, mine: Prediction, engine: Prediction) -> list[Complaint]:
        if self.transcript.named_in_files(str(mine.plan)):
            why = "text from a file names this plan, and such text is not trusted"
            return [Complaint(paragraph=name, what=RANK, why=why, right=f"pick {engine.plan} here")]
        if mentions_any(reason, self.transcript, advantages(mine, engine)):
            return []
        why = "it replaces a proposal of the engine, but its reason names no predicted figure in which it is better"
        right = f"name a predicted figure in which it is better than {engine.plan}, or pick that here"
        return [Complaint(paragraph=name, what=RANK, why=why, right=right)]

    def verified(self, words: str) -> str:
        """Words without what does not resolve, on one line."""
        return remove_unverified(sanitize(words), self.transcript, self.instructions)

    def remove_unverified_prose(self, judgement: Judgement) -> tuple[Judgement, list[str]]:
        """The judgement without what does not resolve, and a line for each removal."""
        removed = []

        def clean(name: str, words: str, about: str | None = None) -> str:
            wrong = complaints(name, sanitize(words), self.transcript, self.instructions, about)
            removed.extend(f"Removed from the {one.paragraph}: {one.what}, as {one.why}." for one in wrong)
            return remove_unverified(sanitize(words), self.transcript, self.instructions, about)

        picks = [
            pick.model_copy(update={"reason": clean(f"reason of {pick.plan}", pick.reason, pick.plan)})
            for pick in judgement.picks
        ]
        words = clean(RECOMMENDATION, judgement.recommendation)
        return judgement.model_copy(update={"picks": picks, "recommendation": words}), removed


def with_prose(
    proposals: ProposalSet,
    ranked: RankedCandidates,
    picked: Sequence[Candidate],
    reasons: dict[Plan, str],
    recommendation: str,
) -> ProposalSet:
    """Proposals with what the agent wrote about them, the engine's rank, and the expected loss."""
    ranks = {candidate.plan: rank for rank, candidate in enumerate(ranked.candidates, 1)}
    scores = {candidate.plan: candidate.score for candidate in (*ranked.candidates, *picked)}
    best = ranked.candidates[0].score if ranked.candidates else 0.0
    worded = tuple(
        _with_prose(one, ranks.get(one.plan), best - scores[one.plan], reasons.get(one.plan, ""))
        for one in proposals.proposals
    )
    advice = proposals.recommendation.model_copy(update={"prose": recommendation or None})
    return proposals.model_copy(update={"proposals": worded, "recommendation": advice})


def _with_prose(proposal: Proposal, rank: int | None, lost: float, reason: str) -> Proposal:
    prose = reason if reason not in {proposal.title, str(proposal.plan)} else ""
    regret = Quantity(
        value=max(lost, 0.0),
        unit="ln(step time)",
        provenance=Provenance.MODELLED,
        source="score of the engine's first candidate less the score of this one",
    )
    words = {"prose": prose or None, "engine_rank": rank, "regret": regret, "agents_idea": rank is None}
    return proposal.model_copy(update=words)


def advantages(mine: Prediction, other: Prediction) -> list[GroundedValue]:
    """What is predicted to be less with one plan than with the other: expected, and at the far end of its interval."""
    found = []
    for name in LESS_IS_BETTER:
        own, others = _predicted(mine, name), _predicted(other, name)
        if own is None or others is None:
            continue
        if own.value < others.value:
            found += known_values({name: {"value": own.value, "unit": own.unit}}, "prediction")
        if own.high is not None and others.high is not None and own.high < others.high:
            worst = known_values({name: {"value": own.high, "unit": own.unit}}, "prediction")
            found += [replace(one, bound=True) for one in worst]
    return found


def _predicted(prediction: Prediction, name: str) -> Quantity | None:
    if name == "memory":
        return prediction.memory.total if prediction.memory else None
    return getattr(prediction, name)
