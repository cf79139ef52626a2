"""Sources that are kept out stay out."""

import hashlib
from dataclasses import replace
from pathlib import Path

import pytest

from asap.calibration.backtest.predicted_table import PredictedTable
from asap.calibration.backtest.tables import agreement_table, agreements
from asap.calibration.dataset.rows import read_models, read_rows
from asap.calibration.dataset.runs import PublishedRun, read_runs
from asap.calibration.dataset.sources import KEPT_OUT
from asap.plans import Plan
from asap.prediction.uncertainty.calibration import load_calibration
from tests.cases import kept

MEASUREMENTS = Path(__file__).parent.parent / "data" / "measurements"
COLLECTED = tuple(kept(__file__)["COLLECTED"])
DRAWN = 4
"""Of each collection after the first."""
LEFT_TO_OTHERS = {"axlearn", "fms_fsdp"}
"""Which others may check predictions with."""


def test_they_were_drawn_by_the_rule() -> None:
    ordered = [sorted(names, key=lambda name: hashlib.sha256(name.encode()).hexdigest()) for names in COLLECTED]
    assert {name for names in ordered for name in names[:DRAWN]} | LEFT_TO_OTHERS == set(KEPT_OUT)


def test_no_fit_saw_them() -> None:
    assert not {*load_calibration().rows} & {*KEPT_OUT}


def test_each_lies_in_the_file_that_says_so() -> None:
    fitted = {row["source_key"] for row in read_rows(MEASUREMENTS / "runs.jsonl.gz")}
    kept = {row["source_key"] for row in read_rows(MEASUREMENTS / "kept_out.jsonl.gz")}
    assert kept == {*KEPT_OUT}
    assert not fitted & kept


@pytest.fixture(scope="module")
def run() -> PublishedRun:
    found = read_runs(read_rows(MEASUREMENTS / "runs.jsonl.gz")[:20], read_models(MEASUREMENTS / "models.jsonl"))
    one = next(each for each in found if isinstance(each, PublishedRun))
    return replace(one, plan=Plan.parse("data=8 remat=full"), step_time=2.0)


def compared(*runs: PublishedRun):
    return agreements(PredictedTable.of(runs, [load_calibration().full] * len(runs)))


def test_another_source_is_slower_by_a_fourth(run):
    (found,) = compared(run, replace(run, source="another", step_time=2.5))
    assert {found.source, found.other} == {run.source, "another"}
    assert (found.pairs, found.apart) == (1, pytest.approx(0.25))
    assert "| 25.0 % |" in agreement_table([found])


def test_replicas_and_shards_are_the_same_run(run):
    assert compared(run, replace(run, source="another", plan=Plan.parse("replica=8 remat=full")))


def test_one_source_or_other_degrees_say_nothing(run):
    tensor = replace(run, source="another", plan=Plan.parse("data=4 model=2 remat=full"))
    assert not compared(run, replace(run, id="again"), tensor)
