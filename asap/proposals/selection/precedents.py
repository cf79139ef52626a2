"""Past optimizations of similar runs, and the sentence by which one supports or opposes a plan."""

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from asap.core.text import plain
from asap.core.units import significant
from asap.diagnosis.diagnosis import Bottleneck
from asap.history import HistoryHit, HistoryQuery, Outcome, move_similarity, precedent_weight, search_history
from asap.models import count_parameters
from asap.plans import AXES, Plan
from asap.plans.enumeration import Table
from asap.study.study import Study

SIMILAR_RUNS = 50
"""Precedents that are searched for one that made the same move. Judgement: which are found."""

LEAST_WEIGHT = 0.25
"""Least weight of a precedent that is cited: that of an even chance that the change made the difference, for the same
move in a run half-way between any run and the same one. Judgement: which are cited."""

SAME_MOVE = 0.999
"""Similarity from which two moves are the same but for rounding."""

_OUTCOMES = {Outcome.IMPROVED: "was faster", Outcome.SLOWER: "was slower", Outcome.OUT_OF_MEMORY: "ran out of memory"}


def similar_runs(study: Study, limit: int) -> list[HistoryHit]:
    """Past optimizations of runs that were like this one, most similar first."""
    diagnosis, profile = study.diagnosis, study.profile
    known = diagnosis.bottleneck is not Bottleneck.INSUFFICIENT_EVIDENCE
    model = study.experiment.model
    query = HistoryQuery(
        bottleneck=diagnosis.bottleneck if known else None,
        bound=profile.roofline.program_bound if profile else None,
        chip=study.chip.name if study.chip else None,
        devices=study.slice.devices if study.slice else study.experiment.hardware.devices,
        parameters=count_parameters(model).total if model and not model.missing() else None,
        plan=study.plan,
    )
    return search_history(query, limit)


def precedent_sentence(hit: HistoryHit, before: Plan, after: Plan) -> str:
    """What a precedent says about a change of plan: its outcome, and why its run is similar."""
    record = hit.record
    same = move_similarity(record, before, after) > SAME_MOVE
    move = "The same move" if same else f"A move of a similar direction, {record.before} to {record.after},"
    times = f" ({significant(record.speedup)} times as fast)" if record.speedup else ""
    return plain(f"{move} {_OUTCOMES[record.outcome]}{times} in a run like this one: {', '.join(hit.why)}.")


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
