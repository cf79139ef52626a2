"""One clock for all ranks: a collective ends for all that take part at the same moment, but for the last hop."""

from collections.abc import Sequence

import numpy as np

from asap.core.errors import BadInputError
from asap.core.units import format_seconds
from asap.traces.collectives import Matched, match
from asap.traces.trace import NS, Integers, RankTrace

LARGEST_SPREAD = 0.1
"""Of the time between the first and the last collective: beyond it, the recordings are not of one run."""


def align(ranks: Sequence[RankTrace]) -> tuple[list[RankTrace], float | None]:
    """Shift all ranks onto the clock of the first; what is left between them, in seconds.

    Clocks go from group to group where no group holds all ranks. Ranks whose clocks agree already (no collective ends
    on one before it starts on another) are left as they are.

    Raises:
        BadInputError: no shift brings the ends of the collectives together.
    """
    matched = sorted(match(ranks), key=lambda each: -len(each.members))
    if not matched:
        return list(ranks), None
    starts, ends = [rank.operations.start for rank in ranks], [rank.operations.end for rank in ranks]
    offset = np.zeros(len(ranks), dtype=np.int64)
    if any(np.any(each.of(starts).max(axis=0) > each.of(ends).min(axis=0)) for each in matched):
        offset = _offsets(matched, ends)
    spread = 0
    for each in matched:
        end = each.of(ends) - offset[each.members, None]
        apart = int(np.median(np.abs(end - end[:1]), axis=1).max())
        if apart > LARGEST_SPREAD * max(int(np.ptp(ends[int(each.members[0])])), 1):
            raise BadInputError(
                f"the clocks of the ranks do not align: collectives end {format_seconds(apart * NS)} apart",
                hint="give the ranks of one run, recorded over the same steps",
            )
        spread = max(spread, apart)
    return [rank.shifted(int(by)) for rank, by in zip(ranks, offset, strict=True)], spread * NS


def _offsets(matched: Sequence[Matched], ends: Sequence[Integers]) -> Integers:
    """How far each clock is ahead of the first's, over as few groups as lead to it."""
    offset = np.zeros(len(ends), dtype=np.int64)
    known = np.zeros(len(ends), dtype=bool)
    known[0] = True
    left = list(matched)
    while ready := next((each for each in left if known[each.members].any() and not known[each.members].all()), None):
        anchor = int(np.flatnonzero(known[ready.members])[0])
        end = ready.of(ends)
        ahead = np.median(end - end[anchor], axis=1).astype(np.int64) + offset[ready.members[anchor]]
        new = ready.members[~known[ready.members]]
        offset[new] = ahead[~known[ready.members]]
        known[new] = True
    return offset
