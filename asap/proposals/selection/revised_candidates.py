"""The candidates after the evidence, in their new order."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

from asap.evidence.effect import revise
from asap.evidence.fact import StatedFact
from asap.plans import Plan
from asap.proposals.selection.candidate import Candidate, fits, with_prediction
from asap.proposals.selection.ranked_candidates import RankedCandidates


@dataclass(frozen=True)
class RevisedCandidates:
    """The candidates after the evidence, and those that it excluded."""

    ranked: RankedCandidates
    excluded: dict[Plan, StatedFact]


def apply_evidence(ranked: RankedCandidates, evidence: Sequence[StatedFact]) -> RevisedCandidates:
    """Take out plans that are known not to work, and put what was measured in place of what was predicted."""
    predictions = [candidate.prediction for candidate in ranked.candidates]
    found = revise(ranked.study, ranked.incumbent, predictions, evidence)

    def revised(candidate: Candidate) -> Candidate:
        prediction = found.predictions[candidate.plan]
        if (ratio := found.measured.get(candidate.plan)) is not None:
            return replace(candidate, prediction=prediction, score=-math.log(ratio), precedent=0.0)
        changed = prediction is not candidate.prediction
        return with_prediction(candidate, prediction) if changed else candidate

    left = [revised(candidate) for candidate in ranked.candidates if candidate.plan not in found.excluded]
    left.sort(key=lambda c: (not fits(c.prediction), -c.score, str(c.plan)))
    return RevisedCandidates(replace(ranked, candidates=left), found.excluded)
