from pathlib import Path

import numpy as np
import pytest

from asap.calibration.dataset.rows import read_models, read_rows
from asap.calibration.dataset.runs import PublishedRun, read_runs
from asap.calibration.dataset.sources import KEPT_OUT, FirstLook, as_first_seen, read_first_looks
from asap.core.errors import ConfigError
from asap.prediction.uncertainty.step_interval import DOUBTFUL

MEASUREMENTS = Path(__file__).parent.parent / "data" / "measurements"


@pytest.fixture(scope="module")
def runs() -> list[PublishedRun]:
    rows = read_rows(MEASUREMENTS / "runs.jsonl.gz")
    found = read_runs(rows, read_models(MEASUREMENTS / "models.jsonl"))
    return [run for run in found if isinstance(run, PublishedRun) and run.step_time is not None]


def test_each_is_of_a_run_that_was_published(runs):
    looks = read_first_looks(MEASUREMENTS / "first_looks.jsonl.gz")
    assert {(look.id, look.source) for look in looks.values()} <= {(run.id, run.source) for run in runs}
    assert not {look.source for look in looks.values()} & {*KEPT_OUT}


def test_a_first_look_stands_in_place_of_today(runs):
    seen, today = runs[:2]
    look = FirstLook(id=seen.id, source=seen.source, predicted_s=2 * (seen.step_time or 0.0), new=("vendor",))
    doubts = {kind: np.zeros(2) for kind in (*DOUBTFUL, "network")}
    residuals, changed = as_first_seen([seen, today], np.array([0.1, 0.2]), doubts, {seen.id: look})
    assert residuals.tolist() == [pytest.approx(-np.log(2)), 0.2]
    assert changed["vendor"].tolist() == [1.0, 0.0]
    assert not changed["chip"].any()
    assert not doubts["vendor"].any()


def test_a_file_of_something_else_is_refused(tmp_path):
    path = tmp_path / "looks.jsonl"
    path.write_text('{"id": "a", "source": "b", "predicted_s": -1, "new": []}\n')
    with pytest.raises(ConfigError, match="first looks"):
        read_first_looks(path)
