"""Runs and what a fit says of them: the one place where published runs are predicted.

Calibration looks at runs with fits that left their source out; the backtest does the same.
"""

from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from asap.plans import Remat
from asap.prediction.calibration import Fit
from asap.prediction.case import Case, stack
from asap.prediction.cases import case_of
from asap.prediction.classes import Groups, allocator_class
from asap.prediction.memory import Memory, memory
from asap.prediction.recomputation import LADDER, accumulations, settled
from asap.prediction.region import distance_from, unseen
from asap.prediction.runs import Run
from asap.prediction.step import step

Vector = NDArray[np.float64]


@dataclass(frozen=True)
class Judged:
    """Per run: predicted seconds, distance from the fit's region, reserved bytes, HBM of a device."""

    step_time: Vector
    distance: Vector
    memory_bytes: Vector
    hbm_bytes: Vector


def with_policies(runs: Sequence[Run]) -> list[Run]:
    """The runs with what they recompute, concluded where they do not say; runs of one sweep share their settings.

    What most silent runs of a group need is taken for all of them, the lighter policy in a tie.
    """
    chosen = [
        settled(run.plan, run.architecture, run.workload, run.hardware, accumulations(run.plan, run.workload))
        for run in runs
    ]
    votes: dict[str, Counter[Remat | None]] = defaultdict(Counter)
    for run, plan in zip(runs, chosen, strict=True):
        votes[run.group][plan.remat] += run.plan.remat is None
    found = []
    for run, plan in zip(runs, chosen, strict=True):
        policy = run.plan.remat or max(LADDER, key=lambda candidate: votes[run.group][candidate])
        found.append(replace(run, plan=plan.model_copy(update={"remat": policy}), silent=run.plan.remat is None))
    return found


def groups_of(run: Run) -> Groups:
    """The groups of a run."""
    return Groups.of(run.hardware, run.workload, run.fabric)


def stacked(runs: Sequence[Run]) -> Case:
    """All runs as one case of arrays."""
    return stack([case_of([run.plan], run.architecture, run.workload, run.hardware) for run in runs])


def allocator_of(run: Run) -> str:
    """The allocator of a run."""
    return allocator_class(run.framework, run.hardware.chip.kind)


def least_memory(runs: Sequence[Run]) -> Memory:
    """Modelled bytes of each run; of one that does not say what it recomputes, if it recomputed everything."""
    thriftiest = {"remat": Remat.FULL}
    leanest = [replace(run, plan=run.plan.model_copy(update=thriftiest)) if run.silent else run for run in runs]
    return memory(stacked(leanest))


def judge(case: Case, runs: Sequence[Run], fit: Fit) -> Judged:
    """What a fit says of runs that were stacked."""
    groups = [groups_of(run) for run in runs]
    reserves = [(found.scale, found.reuse) for found in (fit.reserve(allocator_of(run)) for run in runs)]
    strangeness = np.array([unseen(fit.region, group) for group in groups])
    return Judged(
        step_time=np.asarray(step(case, fit.resolve(groups)).total),
        distance=np.asarray(distance_from(fit.region, case, strangeness)),
        memory_bytes=np.asarray(least_memory(runs).reserved(*np.transpose(reserves)).total),
        hbm_bytes=np.asarray(case.machine.hbm_bytes),
    )


def judge_each(runs: Sequence[Run], fits: Sequence[Fit]) -> Judged:
    """What each run's own fit says of it."""
    columns = {name: np.empty(len(runs)) for name in ("step_time", "distance", "memory_bytes", "hbm_bytes")}
    for fit in {id(fit): fit for fit in fits}.values():
        rows = [index for index, own in enumerate(fits) if own is fit]
        chosen = [runs[index] for index in rows]
        verdict = judge(stacked(chosen), chosen, fit)
        for name, column in columns.items():
            column[rows] = getattr(verdict, name)
    return Judged(**columns)
