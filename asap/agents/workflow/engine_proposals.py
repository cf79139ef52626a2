"""The engine's own answer: what the agents' choice is made into, and what is shown where the agents fail."""

from collections.abc import Sequence

from asap.agents.tools.study_cache import StudyCache
from asap.core.errors import AsapError, InsufficientEvidenceError
from asap.proposals import ProposalSet
from asap.proposals.cite import cite
from asap.proposals.propose import RankedCandidates, no_proposals, propose
from asap.proposals.ranking import Candidate


def engine_proposals(studies: StudyCache, experiment: str) -> ProposalSet:
    """The three that the engine would take, or the reason why there are none."""
    try:
        return cited_proposals(studies.candidates(experiment))
    except InsufficientEvidenceError as error:
        return no_proposals(error)


def cited_proposals(ranked: RankedCandidates, picked: Sequence[Candidate] | None = None) -> ProposalSet:
    """Proposals with their citations; without them, and saying so, if notes and history cannot be searched."""
    try:
        return propose(ranked, cite, picked)
    except AsapError as error:
        bare = propose(ranked, lambda study, plan: (), picked)
        return bare.model_copy(
            update={"warnings": (*bare.warnings, f"Precedents and principles are left out: {error}")}
        )
