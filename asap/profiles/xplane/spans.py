"""Spans of time as columns: what contains what, and how much they cover together."""

import numpy as np

from asap.profiles.xplane.columns import Integers


def own_times(start: Integers, end: Integers) -> Integers:
    """Length of each span without the spans directly inside it.

    A span lies in the nearest one before it, in the order given, that is still open: one that did not contain a span
    in between is closed.
    """
    in_order = not np.any(np.diff(start) < 0)
    inner = np.flatnonzero(start[1:] < np.maximum.accumulate(end)[:-1]) + 1 if in_order else np.arange(len(start))
    own = end - start
    if len(inner):
        around = _containers(end, inner) if in_order else _open_containers(start, end)
        inside = around >= 0
        np.subtract.at(own, around[inside], (end - start)[inner[inside]])
    return own


def covered(start: Integers, end: Integers) -> int:
    """Length of the union."""
    if not len(start):
        return 0
    order = np.argsort(start, kind="stable")
    start, end = start[order], end[order]
    reached = np.append(start[0], np.maximum.accumulate(end)[:-1])
    return int(np.maximum(end - np.maximum(start, reached), 0).sum())


def uncovered(start: Integers, end: Integers, by_start: Integers, by_end: Integers) -> Integers:
    """Of each span, the time outside the union of others."""
    if not len(by_start):
        return end - start
    order = np.argsort(by_start, kind="stable")
    begins, reached = by_start[order], np.maximum.accumulate(by_end[order])
    opens = np.flatnonzero(np.append(True, begins[1:] > reached[:-1]))
    begins, ends = begins[opens], reached[np.append(opens[1:] - 1, len(reached) - 1)]
    total = np.concatenate([[0], np.cumsum(ends - begins)])

    def until(moment: Integers) -> Integers:
        last = np.searchsorted(begins, moment, side="right") - 1
        inside = np.clip(moment, begins[last], ends[last]) - begins[last]
        return np.where(last >= 0, total[last] + inside, 0)

    return end - start - (until(end) - until(start))


def _containers(end: Integers, inner: Integers) -> Integers:
    """For each of the ``inner`` spans, the nearest one before it that ends no earlier; ``-1`` if there is none.

    All in between end earlier, so what is nearest for one of them is the next to try: the way doubles with each pass.
    """
    around = np.full(len(end), -1, dtype=np.int64)
    around[inner] = inner - 1
    unsure = inner
    while len(unsure):
        unsure = unsure[(around[unsure] >= 0) & (end[around[unsure]] < end[unsure])]
        around[unsure] = around[around[unsure]]
    return around[inner]


def _open_containers(start: Integers, end: Integers) -> Integers:
    """The same one by one, for spans in any order."""
    starts, ends = start.tolist(), end.tolist()
    around: list[int] = []
    for row, (begins, stops) in enumerate(zip(starts, ends, strict=True)):
        outer = row - 1
        while outer >= 0 and not (starts[outer] <= begins and stops <= ends[outer]):
            outer = around[outer]
        around.append(outer)
    return np.array(around, dtype=np.int64)
