"""What past optimizations add to the expected gain of a plan."""

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from asap.history import HistoryHit, precedent_weight
from asap.plans import AXES, Plan
from asap.plans.enumeration import Table
from asap.proposals.selection.precedents import SIMILAR_RUNS, similar_runs
from asap.study.study import Study


def precedent_gains(study: Study, plans: Sequence[Plan]) -> dict[Plan, float]:
    """Gain in ``ln(step time)`` that precedents add to each plan, negative where they speak against it."""
    if study.plan is None:
        return {}
    degrees = np.array([[plan.degree(axis) for axis in AXES] for plan in plans])
    return dict(zip(plans, map(float, gains_of_degrees(study, study.plan, degrees)), strict=True))


def mesh_gains(study: Study, meshes: Table) -> NDArray[np.float64]:
    """The same of ICI meshes of shape (meshes, 6), beside the DCN mesh that runs."""
    assert study.plan is not None
    return gains_of_degrees(study, study.plan, meshes * np.array(study.plan.dcn.degrees))


def gains_of_degrees(study: Study, current: Plan, degrees: Table) -> NDArray[np.float64]:
    """The mean gain of the precedents that made the same move, each by its weight, shrunk towards none as if one run of
    full weight had seen no effect.

    Args:
        study: the run.
        current: the plan that runs.
        degrees: total degrees of each axis, of shape (plans, 6).
    """
    return gain_of_precedents(similar_runs(study, SIMILAR_RUNS), current, degrees)


def gain_of_precedents(found: Sequence[HistoryHit], current: Plan, degrees: Table) -> NDArray[np.float64]:
    """What past runs add; arguments as of :func:`gains_of_degrees`. What ran out of memory says nothing of time, and
    whether a plan fits has a prediction of its own."""
    hits = [hit for hit in found if precedent_weight(hit) and hit.record.speedup]
    hits = [hit for hit in hits if hit.record.before is not None and hit.record.after is not None]
    if not hits:
        return np.zeros(len(degrees))
    moves = np.log2(degrees / np.array([current.degree(axis) for axis in AXES]))
    made = np.array([_move(hit.record.before, hit.record.after) for hit in hits])
    lengths = np.linalg.norm(moves, axis=1)[:, None] * np.linalg.norm(made, axis=1)
    alike = np.divide(moves @ made.T, lengths, out=np.zeros(lengths.shape), where=lengths > 0)
    weights = np.maximum(alike, 0.0) * np.array([precedent_weight(hit) for hit in hits])
    effects = np.array([abs(math.log(hit.record.speedup or 1.0)) for hit in hits])
    return weights @ effects / (1 + np.abs(weights).sum(axis=1))


def _move(before: Plan | None, after: Plan | None) -> list[float]:
    assert before is not None
    assert after is not None
    return [math.log2(after.degree(axis) / before.degree(axis)) for axis in AXES]
