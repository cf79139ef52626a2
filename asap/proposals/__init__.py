"""From candidates to three proposals of different strategy, ranked by expected gain less uncertainty."""

from asap.proposals.proposal import Citation, Confidence, Impact, Overrides, Proposal, Recommendation
from asap.proposals.proposal_set import ProposalSet

__all__ = ["Citation", "Confidence", "Impact", "Overrides", "Proposal", "ProposalSet", "Recommendation"]
