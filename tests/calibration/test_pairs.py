from dataclasses import replace
from pathlib import Path

import pytest

from asap.calibration.dataset.pairs import pairs_of
from asap.calibration.dataset.rows import read_models, read_rows
from asap.calibration.dataset.runs import PublishedRun, read_runs
from asap.plans import Plan
from asap.prediction.uncertainty.residual_transfer import OTHER_RUN

MEASUREMENTS = Path(__file__).parent.parent / "data" / "measurements"


@pytest.fixture(scope="module")
def run() -> PublishedRun:
    found = read_runs(read_rows(MEASUREMENTS / "runs.jsonl.gz")[:20], read_models(MEASUREMENTS / "models.jsonl"))
    one = next(each for each in found if isinstance(each, PublishedRun))
    return replace(one, plan=Plan.parse("data=8 remat=full"))


def test_a_run_that_was_measured_twice_is_no_pair(run):
    assert not len(pairs_of([run, replace(run, id="again", step_time=1.0)]).known)


def test_another_batch_is_another_run(run):
    batch = (run.workload.global_batch or 0) + 8
    larger = replace(run, workload=run.workload.model_copy(update={"global_batch": batch}))
    found = pairs_of([run, larger])
    assert found.distance.tolist() == [0.0, 0.0]
    assert found.apart.tolist() == [OTHER_RUN, OTHER_RUN]


def test_another_plan_lies_as_far_as_the_plans_do(run):
    other = replace(run, plan=Plan.parse("data=2 model=4 remat=full"))
    found = pairs_of([run, other])
    assert found.distance.tolist() == found.apart.tolist() == [2.0, 2.0]
