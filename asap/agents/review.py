"""A judgement held against the engine: what goes back to the model, and what is made of it in the end."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from asap.agents.guard import Complaint, Told, complaints, rests_on, strike, tidy
from asap.agents.known import Known, known_values
from asap.agents.schemas import Judgement
from asap.core.provenance import Provenance, Quantity
from asap.plans import Plan
from asap.prediction.prediction import Prediction
from asap.proposals import Proposal, ProposalSet
from asap.proposals.propose import Field
from asap.proposals.ranking import Candidate

RECOMMENDATION = "recommendation"
THE_RANK = "the rank"
LESS_IS_BETTER = ("step_time", "relative_step_time", "communication", "memory")


@dataclass(frozen=True)
class Reviewer:
    """What a judgement is held against.

    Args:
        told: what the tools of the session have said.
        instructions: texts of the agents that must not be repeated.
    """

    told: Told
    instructions: tuple[str, ...]

    def complaints(
        self, judgement: Judgement, picked: Sequence[Candidate], engine: Sequence[Candidate]
    ) -> list[Complaint]:
        """Everything that is wrong with the words, and places taken from the engine's choice without evidence."""
        found = []
        for pick, candidate, instead in zip(judgement.picks, picked, engine, strict=True):
            name, reason = f"reason of {candidate.plan}", tidy(pick.reason)
            found += complaints(name, reason, self.told, self.instructions)
            if candidate.plan != instead.plan:
                found += self._against_the_place(name, reason, candidate.prediction, instead.prediction)
        return found + complaints(RECOMMENDATION, tidy(judgement.recommendation), self.told, self.instructions)

    def _against_the_place(self, name: str, reason: str, mine: Prediction, engine: Prediction) -> list[Complaint]:
        if self.told.named_by_others(str(mine.plan)):
            why = "text from a file names this plan, and who wishes for it is not known"
            return [Complaint(paragraph=name, what=THE_RANK, why=why, right=f"pick {engine.plan} here")]
        if rests_on(reason, self.told, advantages(mine, engine)):
            return []
        why = "it takes a place from engine_choice, and its reason names no figure of the engine in which it is better"
        right = f"name a predicted figure in which it is better than {engine.plan}, or pick that here"
        return [Complaint(paragraph=name, what=THE_RANK, why=why, right=right)]

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


def advantages(mine: Prediction, other: Prediction) -> list[Known]:
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
