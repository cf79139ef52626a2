"""One clock for all ranks: a collective ends for all that take part at the same moment, but for the last hop."""

from collections.abc import Sequence

import numpy as np

from asap.core.errors import BadInputError
from asap.core.units import format_seconds
from asap.traces.collectives import match
from asap.traces.trace import NS, RankTrace

LARGEST_SPREAD = 0.1
"""Of the time between the first and the last collective: beyond it, the recordings are not of one run."""


def align(ranks: Sequence[RankTrace]) -> tuple[list[RankTrace], float | None]:
    """Shift all ranks onto the clock of the first; what is left between them, in seconds.

    Ranks whose clocks agree already (no collective ends on one before it starts on another) are left as they are.

    Raises:
        BadInputError: no shift brings the ends of the collectives together.
    """
    if len(ranks) == 1:
        return list(ranks), None
    matched = match(ranks)
    if not matched:
        return list(ranks), None
    columns = [rank.operations for rank in ranks]
    start = np.array([[ops.start[row] for ops, row in zip(columns, rows, strict=True)] for rows in matched])
    end = np.array([[ops.end[row] for ops, row in zip(columns, rows, strict=True)] for rows in matched])
    offset = np.zeros(len(ranks), dtype=np.int64)
    if np.any(start.max(axis=1) > end.min(axis=1)):
        offset = np.median(end - end[:, :1], axis=0).astype(np.int64)
    apart = np.abs(end - offset - (end - offset)[:, :1])
    spread = int(np.median(apart, axis=0).max())
    if spread > LARGEST_SPREAD * max(int(np.ptp(end[:, 0])), 1):
        raise BadInputError(
            f"the clocks of the ranks do not align: collectives end {format_seconds(spread * NS)} apart",
            hint="give the ranks of one run, recorded over the same steps",
        )
    return [rank.shifted(int(by)) for rank, by in zip(ranks, offset, strict=True)], spread * NS
