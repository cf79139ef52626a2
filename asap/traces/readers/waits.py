"""Waits between streams that the trace states exactly, as ``cuda_sync`` events do."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from asap.traces.trace import Events, Integers


class Synchronisation(NamedTuple):
    """A stream waits for an event that was recorded on another: lanes, and the correlation of both calls."""

    lane: int
    awaited_lane: int
    recorded: int
    waiting: int


def exact_waits(synchronisations: Sequence[Synchronisation], operations: Events) -> Integers:
    """Pairs of operations: the first launched after the wait, and the last launched before the event was recorded.

    Correlation identifiers count the calls of a process, so they tell which came first.
    """
    pairs = []
    for wait in synchronisations:
        waiting = np.flatnonzero((operations.lane == wait.lane) & (operations.correlation > wait.waiting))
        awaited = np.flatnonzero((operations.lane == wait.awaited_lane) & (operations.correlation < wait.recorded))
        if len(waiting) and len(awaited):
            pairs.append((waiting[0], awaited[-1]))
    return np.array(pairs, dtype=np.int64).reshape(-1, 2)
