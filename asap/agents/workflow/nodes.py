"""The plain functions between the agents: they look up the facts, check what an agent says, and assemble the result."""

import math
from collections.abc import Sequence
from typing import Any

from asap.agents.grounding.catalogue import Catalogue, Catalogues, normal
from asap.agents.grounding.verdict import check, faults, rendered
from asap.agents.tools.toolbox import LEFT_OUT, LONGEST_NAME, Answer, tool_of
from asap.agents.workflow.choice import Choice, chosen, cited_proposals, ideas_of
from asap.agents.workflow.protocol import AnalysisRequest, Assessment, Critique, Judgement
from asap.answers.inquiries import Inquiries
from asap.core.errors import InsufficientEvidenceError
from asap.core.text import plain
from asap.core.units import Provenance, Quantity
from asap.diagnosis import Bottleneck
from asap.proposals import Proposal, ProposalSet
from asap.proposals.proposal_set import AgentWords
from asap.proposals.propose import no_proposals
from asap.proposals.ranked_candidates import RankedCandidates
from asap.reports.answers.compact import without

OF_RUN = ("run", "health", "bottleneck", "operations")
OF_PLANS = ("candidates", "precedents", "settings")


class Nodes:
    """The functions over one run at a time. What an agent has finished is kept, whatever becomes of the next.

    Args:
        studies: where experiments are opened.
        catalogues: what the engine has answered.
    """

    def __init__(self, studies: Inquiries, catalogues: Catalogues):
        self._studies, self._catalogues = studies, catalogues
        self.start("")

    def start(self, experiment: str) -> None:
        """Begin with an experiment of which nothing is said yet."""
        self._experiment = experiment
        self._assessment: Assessment | None = None
        self._judgement: Judgement | None = None
        self._critique = Critique()
        self.finished: ProposalSet | None = None

    def open_experiment(self, node_input: AnalysisRequest) -> dict[str, Any]:
        """Open the study, so that what cannot be read stops the run before a model is asked; the analyzer's facts."""
        self._studies.study(node_input.experiment)
        self.start(node_input.experiment)
        return {"experiment": node_input.experiment, "facts": self._facts(OF_RUN)}

    def assess(self, node_input: Assessment) -> dict[str, Any]:
        """Keep the assessment; the proposal agent gets it as it was checked, with the facts on plans."""
        self._assessment = node_input
        words = self._words()
        assessed = {"bottleneck": self._engine.value, "assessment": words.statement or "", "evidence": words.evidence}
        known = ideas_of(self._studies.study(self._experiment), None, (), self._catalogue, self._grounded)
        ideas = [{"idea": one.title, "kind": one.kind.value, "records": one.precedents} for one in known]
        return {"experiment": self._experiment, **assessed, "facts": self._facts(OF_PLANS), "ideas": ideas}

    def choose(self, node_input: Judgement) -> dict[str, Any]:
        """Keep the choice; the critic gets the plans as they will be proposed, with their figures."""
        self._judgement = node_input
        try:
            found = self._choice(self._studies.candidates(self._experiment))
        except InsufficientEvidenceError as error:
            return {"experiment": self._experiment, "picks": [], "reason": plain(error, 300)}
        picks = [
            {"plan": str(one.plan), "reason": self._grounded(found.reasons.get(one.plan, ""), str(one.plan))}
            for one in found.candidates
        ]
        return {"experiment": self._experiment, "picks": picks, **self._facts(("precedents",))}

    def assemble(self, node_input: Critique) -> dict[str, Any]:
        """The proposals, every figure the engine's own; returns a summary for the coordinator."""
        self._critique = node_input
        self.finished = self.proposals()
        return summary_of(self.finished)

    def proposals(self) -> ProposalSet:
        """What there is so far: the agents' words and choice where they gave them, else the engine's."""
        judgement = self._judgement or Judgement()
        try:
            ranked = self._studies.candidates(self._experiment)
            choice = self._choice(ranked)
            found = self._with_words(cited_proposals(ranked, choice.candidates), ranked, choice)
            refused = [f"Not taken from the agent: {one}" for one in choice.refused]
            found = found.model_copy(update={"warnings": (*refused, *found.warnings)})
        except InsufficientEvidenceError as error:
            found = no_proposals(error)
        study = self._studies.study(self._experiment)
        words = self._words() if self._assessment else AgentWords()
        summary = self._grounded(self._critique.summary) or None
        said = words.model_copy(update={"summary": summary})
        ideas = ideas_of(study, found.incumbent, judgement.ideas, self._catalogue, self._grounded)
        return found.model_copy(update={"agents": said if said != AgentWords() else None, "ideas": ideas})

    def against_assessment(self, answer: Assessment) -> list[str]:
        """What goes back to the analyzer."""
        wrong = self._faults(" ".join([answer.statement, *answer.evidence]))
        if answer.bottleneck not in (None, self._engine, Bottleneck.INSUFFICIENT_EVIDENCE) and not answer.evidence:
            wrong.append(f"the findings say {self._engine.value}: give the evidence against it, or take it")
        return wrong

    def against_judgement(self, answer: Judgement) -> list[str]:
        """What goes back to the proposal agent."""
        try:
            ranked = self._studies.candidates(self._experiment)
        except InsufficientEvidenceError:
            return []
        wrong = list(chosen(ranked, answer.picks, self._catalogue.foreign).refused)
        for pick in answer.picks:
            wrong += self._faults(pick.reason, pick.plan)
        return wrong + self._faults(answer.recommendation)

    @property
    def _engine(self) -> Bottleneck:
        return self._studies.study(self._experiment).diagnosis.bottleneck

    @property
    def _catalogue(self) -> Catalogue:
        return self._catalogues.of(self._experiment)

    def _facts(self, names: tuple[str, ...]) -> dict[str, Answer]:
        """Answers of queries by name; a query that cannot be answered says why."""
        answers = {name: tool_of(name, self._studies, self._catalogues, self._experiment)() for name in names}
        return without(answers, LEFT_OUT)

    def _faults(self, words: str, about: str | None = None) -> list[str]:
        return faults(check(words, self._catalogue, about))

    def _grounded(self, words: str, about: str | None = None) -> str:
        return rendered(check(words, self._catalogue, about))

    def _choice(self, ranked: RankedCandidates) -> Choice:
        return chosen(ranked, self._judgement.picks if self._judgement else (), self._catalogue.foreign)

    def _words(self) -> AgentWords:
        """The assessment, checked; nothing of it where it repeats the engine."""
        said, found = self._assessment or Assessment(), self._engine
        kind = said.bottleneck
        other = kind not in (None, found, Bottleneck.INSUFFICIENT_EVIDENCE)
        dissent = f"Dissent, {kind.value} instead of {found.value}: " if kind and other else ""
        return AgentWords(
            statement=f"{dissent}{' '.join(self._new([said.statement]))}" or None,
            evidence=self._new(said.evidence),
            missing=self._new(said.missing),
        )

    def _new(self, words: Sequence[str]) -> tuple[str, ...]:
        """What the engine does not say in the same words, checked."""
        return tuple(self._grounded(one) for one in words if one and normal(one) not in self._catalogue.lines)

    def _with_words(self, proposals: ProposalSet, ranked: RankedCandidates, choice: Choice) -> ProposalSet:
        """Proposals with what the agents wrote about them, the engine's rank, and the expected loss."""
        ranks = {candidate.plan: rank for rank, candidate in enumerate(ranked.candidates, 1)}
        scores = {one.plan: one.score for one in (*ranked.candidates, *choice.candidates)}
        best = ranked.candidates[0].score if ranked.candidates else 0.0
        worded = tuple(
            _with_prose(one, ranks.get(one.plan), best - scores[one.plan], self._prose(one, choice))
            for one in proposals.proposals
        )
        said = self._judgement.recommendation if self._judgement else ""
        advice = proposals.recommendation.model_copy(update={"prose": self._grounded(said) or None})
        return proposals.model_copy(update={"proposals": worded, "recommendation": advice})

    def _prose(self, proposal: Proposal, choice: Choice) -> str:
        plan = str(proposal.plan)
        reason = choice.reasons.get(proposal.plan, "")
        words = "" if reason in {proposal.title, plan} else self._grounded(reason, plan)
        against = [one.objection for one in self._critique.objections if _same(one.plan, plan)]
        return " ".join([words, *(f"The critic: {self._grounded(one, plan)}" for one in against)]).strip()


def _same(one: str, other: str) -> bool:
    return set(plain(one, LONGEST_NAME).split()) == set(other.split())


def _with_prose(proposal: Proposal, rank: int | None, lost: float, prose: str) -> Proposal:
    source = "score of the engine's first candidate less the score of this one"
    value = max(lost, 0.0) if math.isfinite(lost) else 0.0
    regret = Quantity(value=value, unit="ln(step time)", provenance=Provenance.MODELLED, source=source)
    words = {"prose": prose or None, "engine_rank": rank, "regret": regret, "agents_idea": rank is None}
    return proposal.model_copy(update=words)


def summary_of(proposals: ProposalSet) -> dict[str, Any]:
    """What the coordinator gets to see."""
    listed: Sequence[Proposal] = proposals.proposals
    return {
        "recommendation": proposals.recommendation.statement,
        "proposals": [{"rank": one.rank, "title": one.title, "plan": str(one.plan)} for one in listed],
        "ideas": [one.title for one in proposals.ideas],
        "warnings": list(proposals.warnings),
    }
