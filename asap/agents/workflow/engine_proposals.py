"""Proposals with their citations and with what would take more."""

from collections.abc import Sequence

from asap.core.errors import AsapError
from asap.proposals import ProposalSet
from asap.proposals.options import options
from asap.proposals.propose import propose
from asap.proposals.reasons.cite import cite
from asap.proposals.recommend import add_options
from asap.proposals.selection.candidate import Candidate
from asap.proposals.selection.ranked_candidates import RankedCandidates
from asap.proposals.situation import TOO_TIGHT


def cited_proposals(ranked: RankedCandidates, picked: Sequence[Candidate] | None = None) -> ProposalSet:
    """Proposals with their citations; without them, and saying so, if notes and history cannot be searched."""
    try:
        return _with_options(propose(ranked, cite, picked), ranked)
    except AsapError as error:
        bare = _with_options(propose(ranked, lambda study, plan: (), picked), ranked)
        return bare.model_copy(
            update={"warnings": (*bare.warnings, f"Precedents and principles are left out: {error}")}
        )


def _with_options(proposals: ProposalSet, ranked: RankedCandidates) -> ProposalSet:
    """The proposals with what would take more, where they leave something to wish."""
    if proposals.situation is None or proposals.situation.name not in (*TOO_TIGHT, "well_set", "near_limit"):
        return proposals
    found = options(ranked.study, ranked.incumbent)
    settled = proposals.smallest_fit is not None
    advice = proposals.recommendation if settled else add_options(proposals.recommendation, found)
    return proposals.model_copy(update={"options": found, "recommendation": advice})
