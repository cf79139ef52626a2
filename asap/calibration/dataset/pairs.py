"""Ordered pairs of runs of one group: one is measured, the other is predicted from it."""

from collections import defaultdict
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from asap.calibration.dataset.runs import PublishedRun


class Pairs(NamedTuple):
    """Indices of the measured runs, and of those that are predicted from them."""

    known: NDArray[np.int64]
    other: NDArray[np.int64]


def grouped(runs: Sequence[PublishedRun]) -> list[list[int]]:
    """Indices of the runs of each group, in order of appearance."""
    groups: dict[str, list[int]] = defaultdict(list)
    for index, run in enumerate(runs):
        groups[run.group].append(index)
    return list(groups.values())


def pairs_of(runs: Sequence[PublishedRun]) -> Pairs:
    """Every ordered pair inside a group, but not of a run that was measured twice."""
    found = [
        (one, other)
        for members in grouped(runs)
        for one in members
        for other in members
        if not _measured_twice(runs[one], runs[other])
    ]
    known, other = np.array(found, dtype=int).reshape(-1, 2).T
    return Pairs(known, other)


def _measured_twice(run: PublishedRun, other: PublishedRun) -> bool:
    mine = run.plan, run.architecture, run.workload, run.hardware
    return mine == (other.plan, other.architecture, other.workload, other.hardware)
