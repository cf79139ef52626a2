import numpy as np
import pytest

from asap.calibration.fit.regression import Regression
from asap.hardware.names import resolve_hardware
from asap.models import Architecture, Workload
from asap.plans import Plan
from asap.prediction.step_model.encoding import step_inputs
from asap.prediction.step_model.groups import Groups
from asap.prediction.step_model.step import predict_step
from asap.prediction.step_model.step_parts import stack
from asap.prediction.uncertainty.calibration import load_calibration

MODEL = Architecture(layers=32, d_model=4096, d_ff=14336, heads=32, kv_heads=8, head_dim=128, vocab=32000)
WORK = Workload(global_batch=512, sequence_length=4096, framework="MaxText", attention="flash")
PLANS = [Plan.parse(f"data={64 // n} model={n} remat={policy}") for n in (1, 2, 4, 8) for policy in ("none", "full")]
CHIPS = ("h100-64", "a100-80gb-64")


@pytest.fixture(scope="module")
def runs():
    """Inputs, groups and step times of runs that follow the calibrated model."""
    singles = [(plan, resolve_hardware(chip).slice) for chip in CHIPS for plan in PLANS]
    inputs = stack([step_inputs([plan], MODEL, WORK, hardware) for plan, hardware in singles])
    groups = [Groups.of(hardware, WORK) for _, hardware in singles]
    return inputs, groups, np.asarray(predict_step(inputs, load_calibration().full.resolve(groups)).total)


def test_runs_that_follow_the_model_are_fitted(runs):
    inputs, groups, times = runs
    regression = Regression(inputs, groups, ["one"] * len(groups), times.tolist())
    found = regression.fit(np.ones(len(groups), dtype=bool))
    assert np.median(np.abs(regression.predict(found) - np.log(times))) < 0.05


def test_a_fit_starts_from_constants_as_they_are_written(runs):
    inputs, groups, times = runs
    regression = Regression(inputs, groups, ["one"] * len(groups), times.tolist())
    theta = np.where([term.constant is not None for term in regression.terms], 0.1, 0.0)
    assert regression.terms_of(regression.constants(theta)) == pytest.approx(theta, abs=1e-3)


def test_one_outlier_moves_the_fit_little(runs):
    inputs, groups, times = runs
    wrong = times * np.where(np.arange(len(times)) == 3, 5.0, 1.0)
    everything = np.ones(len(groups), dtype=bool)
    clean, robust = (Regression(inputs, groups, ["one"] * len(groups), t.tolist()) for t in (times, wrong))
    apart = robust.predict(robust.fit(everything)) - clean.predict(clean.fit(everything))
    assert np.median(np.abs(apart)) < 0.05


def test_a_run_that_is_left_out_does_not_count(runs):
    inputs, groups, times = runs
    use = np.arange(len(times)) != 3
    wrong = np.where(use, times, 100 * times)
    first, second = (Regression(inputs, groups, ["one"] * len(groups), t.tolist()).fit(use) for t in (times, wrong))
    assert first == pytest.approx(second, abs=1e-4)


def test_the_derivatives_are_those_of_the_residuals(runs):
    inputs, groups, times = runs
    regression = Regression(inputs, groups, ["one"] * len(groups), times.tolist())
    theta = np.linspace(-0.1, 0.1, len(regression.terms))
    columns = regression._derivatives(theta)
    for index in range(0, len(theta), 7):
        step = np.zeros(len(theta))
        step[index] = 1e-5
        slope = (regression._residuals(theta + step) - regression._residuals(theta - step)) / 2e-5
        assert columns[:, index] == pytest.approx(slope, rel=1e-2, abs=1e-3)


def test_no_group_leaves_what_is_physical(runs):
    inputs, groups, times = runs
    regression = Regression(inputs, groups, ["one"] * len(groups), times.tolist())
    for constant in regression.constants(np.full(len(regression.terms), 3.0)).values():
        if constant.share:
            assert 0 < constant.of({"chip": "h100", "framework": "maxtext", "kernel": "flash"}) < 1
