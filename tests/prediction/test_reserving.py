from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from asap.prediction.judged import least_memory, with_policies
from asap.prediction.reserving import CONFIDENCE, reserves_of
from asap.prediction.rows import read_models, read_rows
from asap.prediction.runs import Run, read_runs

MEASUREMENTS = Path(__file__).parent.parent / "data" / "measurements"


@pytest.fixture(scope="module")
def runs():
    rows = [row for row in read_rows(MEASUREMENTS / "runs.jsonl.gz") if row["source_key"] == "bigscience_a100"]
    found = read_runs(rows, read_models(MEASUREMENTS / "models.jsonl"))
    return with_policies([run for run in found if isinstance(run, Run)])


def telling(runs, factor):
    """The runs, each having held so many times what is modelled of it, temporaries and all."""
    modelled = np.asarray(least_memory(runs).total)
    return [
        replace(run, out_of_memory=False, memory_bytes=float(size) * factor)
        for run, size in zip(runs, modelled, strict=True)
    ]


def test_runs_that_say_what_they_held_are_learnt_from(runs):
    little, much = (reserves_of(telling(runs, factor))["pytorch"] for factor in (0.9, 1.2))
    assert little.scale < much.scale
    assert much.low < 1 < much.high


def test_more_deaths_never_make_the_reserve_smaller(runs):
    told = [replace(run, memory_bytes=None) for run in runs]
    dead = [replace(run, out_of_memory=True) for run in told]
    fewer, more = reserves_of(told)["pytorch"], reserves_of(dead)["pytorch"]
    assert more.scale * more.reuse > fewer.scale * fewer.reuse


def test_a_plan_that_fits_does_so_more_likely_than_not():
    assert 0.5 < CONFIDENCE < 1
