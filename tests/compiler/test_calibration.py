import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from asap.compiler.calibration import CompiledCalibration, fit_constants

ERRORS = st.dictionaries(
    st.sampled_from(["v4", "v5e", "v5p", "v6e"]),
    st.dictionaries(st.sampled_from("abc"), st.lists(st.floats(-0.5, 0.5), min_size=1, max_size=4), min_size=1),
    min_size=1,
)


def test_where_the_models_of_each_chip_agree_the_constant_is_their_error():
    agreeing = {"v5e": {"a": [0.2], "b": [0.2, 0.2]}, "v6e": {"a": [-0.1], "b": [-0.1]}}
    assert fit_constants(agreeing) == pytest.approx({"v5e": 0.2, "v6e": -0.1})


def test_where_models_differ_as_much_as_chips_there_is_none():
    apart = {"v5e": {"a": [0.2], "b": [-0.2]}, "v6e": {"a": [0.1], "b": [-0.2]}}
    assert fit_constants(apart) == pytest.approx({"v5e": 0.0, "v6e": 0.0})


def test_one_model_a_chip_tells_nothing_of_the_chip():
    assert fit_constants({"v5e": {"a": [0.3]}, "v6e": {"b": [-0.2]}}) == {"v5e": 0.0, "v6e": 0.0}


@given(ERRORS)
def test_a_constant_is_between_nothing_and_the_mean_over_models(errors):
    for chip, constant in fit_constants(errors).items():
        ends = [error for found in errors[chip].values() for error in found]
        assert min(0.0, *ends) - 1e-9 <= constant <= max(0.0, *ends) + 1e-9


def test_a_calibrated_time_has_the_interval_of_models_that_were_left_out():
    calibration = CompiledCalibration(constants={"v5e": 0.1}, half_width=0.2, runs=3, source="three runs")
    found = calibration.calibrated("v5e", 10.0)
    assert found.value == pytest.approx(10 * math.exp(-0.1))
    assert (found.low, found.high) == pytest.approx((10 * math.exp(-0.3), 10 * math.exp(0.1)))
    assert calibration.calibrated("tpu7x", 10.0) is None
