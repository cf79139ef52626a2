from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from asap.calibration.dataset.rows import read_models, read_rows
from asap.calibration.dataset.runs import PublishedRun, read_runs
from asap.calibration.dataset.sources import infer_missing_remat
from asap.calibration.fit.memory_overheads import fit_allocator_overheads
from asap.calibration.fit.predicted_runs import minimum_memory
from asap.prediction.prediction import FIT_CONFIDENCE

MEASUREMENTS = Path(__file__).parent.parent / "data" / "measurements"


@pytest.fixture(scope="module")
def runs():
    rows = [row for row in read_rows(MEASUREMENTS / "runs.jsonl.gz") if row["source_key"] == "bigscience_a100"]
    found = read_runs(rows, read_models(MEASUREMENTS / "models.jsonl"))
    return infer_missing_remat([run for run in found if isinstance(run, PublishedRun)])


def telling(runs, factor):
    """The runs, each having held so many times what is modelled of it, temporaries and all."""
    modelled = np.asarray(minimum_memory(runs).total)
    return [
        replace(run, out_of_memory=False, memory_bytes=float(size) * factor)
        for run, size in zip(runs, modelled, strict=True)
    ]


def test_runs_that_say_what_they_held_are_learnt_from(runs):
    little, much = (fit_allocator_overheads(telling(runs, factor))["pytorch"] for factor in (0.9, 1.2))
    assert little.scale < much.scale
    assert much.low < 1 < much.high


def test_more_deaths_never_make_the_reserve_smaller(runs):
    told = [replace(run, memory_bytes=None) for run in runs]
    dead = [replace(run, out_of_memory=True) for run in told]
    fewer, more = fit_allocator_overheads(told)["pytorch"], fit_allocator_overheads(dead)["pytorch"]
    assert more.scale * more.reuse > fewer.scale * fewer.reuse


def test_a_plan_that_fits_does_so_more_likely_than_not():
    assert 0.5 < FIT_CONFIDENCE < 1
