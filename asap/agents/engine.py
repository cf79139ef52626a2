"""The engine's own answer: what the agents' choice is made into, and what is shown where the agents fail."""

from collections.abc import Sequence

from asap.agents.desk import Desk
from asap.core.errors import AsapError, InsufficientEvidenceError
from asap.proposals import ProposalSet
from asap.proposals.cite import cite
from asap.proposals.propose import Field, nothing, propose
from asap.proposals.ranking import Candidate


def engine_proposals(desk: Desk, experiment: str) -> ProposalSet:
    """The three that the engine would take, or the reason why there are none."""
    try:
        return cited(desk.survey(experiment))
    except InsufficientEvidenceError as error:
        return nothing(error)


def cited(survey: Field, picked: Sequence[Candidate] | None = None) -> ProposalSet:
    """Proposals with their citations; without them, and saying so, if notes and history cannot be searched."""
    try:
        return propose(survey, cite, picked)
    except AsapError as error:
        bare = propose(survey, lambda study, plan: (), picked)
        return bare.model_copy(
            update={"warnings": (*bare.warnings, f"Precedents and principles are left out: {error}")}
        )
