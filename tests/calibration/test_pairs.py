"""Pairs of published runs, of which one is predicted from the other, and how much of the step changes between them."""

import math
from collections import defaultdict
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from asap.calibration.dataset.rows import read_models, read_rows
from asap.calibration.dataset.runs import PublishedRun, read_runs
from asap.calibration.dataset.sources import pairs_of
from asap.calibration.fit.predicted_runs import change_of_pairs, predict_runs
from asap.plans import Plan
from asap.prediction.profile_ratios import doublings, spread
from asap.prediction.step_model.step_parts import change_between
from asap.prediction.uncertainty.calibration import load_calibration

MEASUREMENTS = Path(__file__).parent.parent / "data" / "measurements"


@pytest.fixture(scope="module")
def run() -> PublishedRun:
    found = read_runs(read_rows(MEASUREMENTS / "runs.jsonl.gz")[:20], read_models(MEASUREMENTS / "models.jsonl"))
    one = next(each for each in found if isinstance(each, PublishedRun))
    return replace(one, plan=Plan.parse("data=8 remat=full"))


def changes(runs):
    pairs, found = pairs_of(runs), predict_runs(runs, load_calibration().full)
    return change_of_pairs(runs, found.parts, pairs).tolist()


def test_a_run_that_was_measured_twice_is_no_pair(run):
    assert not len(pairs_of([run, replace(run, id="again", step_time=1.0)]).known)


def test_another_batch_changes_little_of_what_a_token_takes(run):
    larger = replace(run, workload=run.workload.model_copy(update={"global_batch": 8 * run.workload.global_batch}))
    there, back = changes([run, larger])
    assert 0 < there == back < 1


def test_more_of_the_step_changes_with_more_of_the_plan(run):
    near, far = (replace(run, plan=Plan.parse(plan)) for plan in ("data=4 model=2 remat=full", "data=2 model=4"))
    assert changes([run, near])[0] < changes([run, far])[0]


def test_half_of_what_the_parts_differ_by_counts_over_the_shorter_step():
    assert change_between([1.0, 2.0], [1.0, 2.0]) == 0
    assert change_between([1.0, 1.0], [2.0, 2.0]) == change_between([2.0, 2.0], [1.0, 1.0]) == 0.5
    assert change_between([2.0, 0.0], [0.0, 2.0]) == 1


def test_the_spread_of_a_changed_mesh_is_that_of_published_runs():
    found = read_runs(read_rows(MEASUREMENTS / "runs.jsonl.gz"), read_models(MEASUREMENTS / "models.jsonl"))
    timed = [each for each in found if isinstance(each, PublishedRun) and each.step_time]
    beside_the_mesh = [(each.plan.model_dump(exclude={"ici", "dcn"}), each.workload) for each in timed]
    changes: dict[float, list[float]] = defaultdict(list)
    for known, other in zip(*pairs_of(timed), strict=True):
        one, another = timed[known], timed[other]
        if one.plan.devices == another.plan.devices and beside_the_mesh[known] == beside_the_mesh[other]:
            changes[doublings(one.plan, another.plan)].append(abs(math.log(one.step_time / another.step_time)))
    for moved in (1.0, 2.0, 3.0):
        assert spread(moved) == pytest.approx(np.quantile(changes[moved], 0.9), abs=0.005)
