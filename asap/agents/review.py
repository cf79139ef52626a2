"""A judgement held against the engine: what goes back to the model, and what is made of it in the end."""

from collections.abc import Sequence
from dataclasses import dataclass

from asap.agents.guard import Complaint, Told, complaints, rests_on_evidence, strike, tidy
from asap.agents.schemas import Judgement
from asap.core.provenance import Provenance, Quantity
from asap.plans import Plan
from asap.proposals import Proposal, ProposalSet
from asap.proposals.propose import Field
from asap.proposals.ranking import Candidate

RECOMMENDATION = "recommendation"


@dataclass(frozen=True)
class Reviewer:
    """What a judgement is held against.

    Args:
        told: what the tools of the session have said.
        instructions: texts of the agents that must not be repeated.
    """

    told: Told
    instructions: tuple[str, ...]

    def complaints(self, judgement: Judgement, picked: Sequence[Plan], engine: Sequence[Plan]) -> list[Complaint]:
        """Everything that is wrong with the words, and places taken from the engine's choice without evidence."""
        found = []
        for number, pick in enumerate(judgement.picks):
            name = f"reason of {picked[number]}"
            found += complaints(name, tidy(pick.reason), self.told, self.instructions)
            if picked[number] != engine[number] and not rests_on_evidence(tidy(pick.reason), self.told):
                found.append(_unreasoned(name, engine[number]))
        return found + complaints(RECOMMENDATION, tidy(judgement.recommendation), self.told, self.instructions)

    def settle(self, judgement: Judgement) -> tuple[Judgement, list[str]]:
        """The judgement with everything struck that does not resolve, and what was struck."""
        struck = []

        def clean(name: str, words: str) -> str:
            wrong = complaints(name, tidy(words), self.told, self.instructions)
            struck.extend(f"Struck from the {one.paragraph}: {one.what}, as {one.why}." for one in wrong)
            return strike(tidy(words), self.told, self.instructions)

        picks = [
            pick.model_copy(update={"reason": clean(f"reason of {pick.plan}", pick.reason)}) for pick in judgement.picks
        ]
        words = clean(RECOMMENDATION, judgement.recommendation)
        return judgement.model_copy(update={"picks": picks, "recommendation": words}), struck


def with_words(proposals: ProposalSet, survey: Field, reasons: dict[Plan, str], recommendation: str) -> ProposalSet:
    """Proposals with what the agent wrote about them, the engine's rank, and what the engine expects to be lost."""
    places = {candidate.plan: (rank, candidate) for rank, candidate in enumerate(survey.candidates, 1)}
    worded = tuple(_worded(one, *places[one.plan], survey, reasons.get(one.plan, "")) for one in proposals.proposals)
    advice = proposals.recommendation.model_copy(update={"prose": recommendation or None})
    return proposals.model_copy(update={"proposals": worded, "recommendation": advice})


def _worded(proposal: Proposal, rank: int, candidate: Candidate, survey: Field, reason: str) -> Proposal:
    said = reason if reason not in {proposal.title, str(proposal.plan)} else ""
    lost = survey.candidates[0].score - candidate.score
    regret = Quantity(
        value=max(lost, 0.0),
        unit="ln(step time)",
        provenance=Provenance.MODELLED,
        source="score of the engine's first candidate less the score of this one",
    )
    return proposal.model_copy(update={"prose": said or None, "engine_rank": rank, "regret": regret})


def _unreasoned(name: str, engine: Plan) -> Complaint:
    why = "it takes a place from engine_choice, and its reason names no figure that the engine gave"
    right = f"name the figure of a tool that speaks for it, or pick {engine} here"
    return Complaint(paragraph=name, what="the rank", why=why, right=right)
