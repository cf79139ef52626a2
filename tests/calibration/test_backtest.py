import json
from functools import cache
from pathlib import Path

import pytest

from asap.calibration.backtest.backtest import BacktestReport, backtest
from asap.calibration.dataset.rows import read_rows
from asap.prediction.uncertainty.calibration import load_calibration

pytestmark = pytest.mark.slow

MEASUREMENTS = Path(__file__).parent.parent / "data" / "measurements"
RUNS, MODELS = MEASUREMENTS / "runs.jsonl.gz", MEASUREMENTS / "models.jsonl"


@cache
def report(rival=None) -> BacktestReport:
    return backtest([RUNS], MODELS, baseline=rival)


def test_the_committed_rows_give_the_error_that_the_calibration_states():
    found, stated = report(), load_calibration()
    assert {source: errors.rows for source, errors in found.by_source.items()} == stated.rows
    assert found.step_time.macro_median_ape == pytest.approx(stated.error["macro_median_ape"], abs=0.0002)
    assert found.step_time.p90_ape == pytest.approx(stated.error["p90_ape"], abs=0.0002)


def test_every_row_is_predicted_or_skipped_with_a_reason():
    found = report()
    assert found.predicted + sum(found.skipped.values()) == found.rows == len(read_rows(RUNS))


@pytest.mark.parametrize("rival", ["constant-mfu", "roofline"])
def test_ours_beats_the_rivals(rival):
    ours, theirs = report(), report(rival)
    assert ours.step_time.macro_median_ape < theirs.step_time.macro_median_ape
    assert ours.what_if.macro_median_ape < theirs.what_if.macro_median_ape
    assert (ours.ranking.mean_regret or 0) < (theirs.ranking.mean_regret or 0)


def test_the_keys_that_others_read():
    found = json.loads(report().model_dump_json())
    assert set(found) >= {"rows", "predicted", "skipped", "step_time", "by_hardware", "by_source", "what_if", "ranking"}
    assert set(found["step_time"]) >= {"macro_median_ape", "median_ape", "mape", "p90_ape", "coverage_90"}
    assert set(found["what_if"]) >= {"pairs", "macro_median_ape", "median_ape", "mape", "p90_ape", "coverage_90"}
    assert set(found["ranking"]) == {
        "groups", "top1_within_2pct", "best_in_top3", "mean_regret", "regret_after_three", "kendall_tau",
    }  # fmt: skip
    assert set(found["memory"]) >= {"oom_recall", "ok_accepted"}


def test_a_source_is_never_judged_by_a_fit_that_saw_it():
    known = load_calibration()
    for source in known.rows:
        assert known.fit_for(source) is known.without[source]
    assert known.fit_for("another") is known.full


def test_rows_of_another_source_use_the_full_fit(tmp_path):
    rows = [row | {"source_key": "another"} for row in read_rows(RUNS) if row["source_key"] == "nemo_perf"]
    path = tmp_path / "rows.jsonl"
    path.write_text("\n".join(map(json.dumps, rows)))
    assert backtest([path], MODELS).step_time.mape < report().by_source["nemo_perf"].mape


def test_nothing_to_predict_is_a_report(tmp_path):
    path = tmp_path / "rows.jsonl"
    path.write_text('{"id": "x", "status": "ok"}\n')
    found = backtest([path], MODELS)
    assert (found.predicted, found.step_time, found.what_if) == (0, None, None)
    assert sum(found.skipped.values()) == 1


def test_half_of_a_sources_runs_narrow_the_predictions_of_the_others():
    few, many = report().own_runs
    assert few.known < many.known
    for score, error, width in ((few, 0.95, 1.0), (many, 0.85, 0.85)):
        assert score.mean.error_after < error * score.mean.error_before
        assert score.mean.half_width_after < width * score.mean.half_width_before
        assert score.mean.coverage_after >= 0.9
