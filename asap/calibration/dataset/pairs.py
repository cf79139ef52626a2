"""Ordered pairs of runs of one group: one is measured, the other is predicted from it."""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from asap.calibration.dataset.runs import PublishedRun
from asap.prediction.uncertainty.residual_transfer import plan_distance, run_distance


@dataclass(frozen=True)
class Pairs:
    """Indices of the known and of the predicted run, and how far they differ.

    Args:
        known: of the measured runs.
        other: of those that are predicted from them.
        distance: between their plans, doublings.
        apart: between the runs (:func:`run_distance`).
    """

    known: NDArray[np.int64]
    other: NDArray[np.int64]
    distance: NDArray[np.float64]
    apart: NDArray[np.float64]


def grouped(runs: Sequence[PublishedRun]) -> list[list[int]]:
    """Indices of the runs of each group, in order of appearance."""
    groups: dict[str, list[int]] = defaultdict(list)
    for index, run in enumerate(runs):
        groups[run.group].append(index)
    return list(groups.values())


def pairs_of(runs: Sequence[PublishedRun]) -> Pairs:
    """Every ordered pair inside a group, but not of a run that was measured twice."""
    known, other, distances, apart = [], [], [], []
    for members in grouped(runs):
        for i in members:
            for j in members:
                if further := run_distance(runs[i].plan, runs[j].plan, _alike(runs[i], runs[j])):
                    known.append(i)
                    other.append(j)
                    distances.append(plan_distance(runs[i].plan, runs[j].plan))
                    apart.append(further)
    return Pairs(np.array(known, dtype=int), np.array(other, dtype=int), np.array(distances), np.array(apart))


def _alike(run: PublishedRun, other: PublishedRun) -> bool:
    """Whether nothing but the plan may differ."""
    return (run.architecture, run.workload, run.hardware) == (other.architecture, other.workload, other.hardware)
