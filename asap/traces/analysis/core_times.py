"""Devices that share the cores of a host: how much of the time of these cores each operation took.

What runs at one moment shares it equally, so the times of all operations add up to the time in which anything ran. A
collective works from when its last rank has come; before that it waits, and others have the cores.
"""

from collections import defaultdict
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from asap.traces.trace import Integers, OperationKind, RankTrace

Nanoseconds = NDArray[np.float64]


def share_cores(ranks: Sequence[RankTrace]) -> bool:
    """Whether the devices are virtual ones of a CPU."""
    return len(ranks) > 1 and all(rank.groups_unknown for rank in ranks)


def core_times(ranks: Sequence[RankTrace]) -> list[Nanoseconds]:
    """For each rank, what each of its operations took."""
    begin, end = _begins(ranks), [rank.operations.end for rank in ranks]
    starts, ends = np.sort(np.concatenate(begin)), np.sort(np.concatenate(end))
    moments = np.unique(np.concatenate([starts, ends]))
    running = np.searchsorted(starts, moments, side="right") - np.searchsorted(ends, moments, side="right")
    shared = np.diff(moments) / np.maximum(running[:-1], 1)
    passed = np.concatenate([[0.0], np.cumsum(shared)])
    spans = zip(begin, end, strict=True)
    return [passed[np.searchsorted(moments, to)] - passed[np.searchsorted(moments, since)] for since, to in spans]


def _begins(ranks: Sequence[RankTrace]) -> list[Integers]:
    """When each operation began to work: a collective as long before its end as the shortest of all ranks took.

    The n-th operation of a name is the n-th of that name on other ranks.
    """
    begin = [rank.operations.start.copy() for rank in ranks]
    rows: dict[str, list[tuple[int, Integers]]] = defaultdict(list)
    for number, rank in enumerate(ranks):
        events = rank.operations
        communicating = events.kind == OperationKind.COMMUNICATION
        for name in np.unique(events.name[communicating]).tolist():
            rows[str(rank.names[name])].append((number, np.flatnonzero(communicating & (events.name == name))))
    for found in rows.values():
        if len({len(mine) for _, mine in found}) == 1:
            times = [ranks[rank].operations.end[mine] - ranks[rank].operations.start[mine] for rank, mine in found]
            for rank, mine in found:
                begin[rank][mine] = ranks[rank].operations.end[mine] - np.min(times, axis=0)
    return begin
