"""From candidates to three proposals that differ in strategy, ranked by what is expected after doubt."""

from asap.proposals.proposal import Citation, Confidence, Impact, Overrides, Proposal, ProposalSet, Recommendation

__all__ = ["Citation", "Confidence", "Impact", "Overrides", "Proposal", "ProposalSet", "Recommendation"]
