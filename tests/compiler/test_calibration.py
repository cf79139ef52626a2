import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from asap.compiler.calibration import CompiledCalibration, fit_log_factor, fit_log_growth

LEVELS = st.lists(st.floats(0.1, 100.0), min_size=1, max_size=4)
SIZES = st.lists(st.sampled_from([1, 2, 3, 4, 8, 32]), min_size=2, max_size=6, unique=True)


@given(st.floats(-0.2, 0.2), LEVELS, SIZES)
def test_the_growth_is_found_whatever_the_level_of_each_model(growth, levels, slices):
    series = [[(n, level * math.exp(growth * math.log2(n))) for n in slices] for level in levels]
    assert fit_log_growth(series) == pytest.approx(growth, abs=1e-9)


def test_runs_of_one_number_of_slices_tell_nothing():
    assert fit_log_growth([[(1, 10.0), (1, 12.0)], [(4, 7.0)]]) == 0.0
    assert fit_log_growth([]) == 0.0


@given(st.floats(-0.5, 0.5), st.lists(st.integers(1, 5), min_size=1, max_size=4))
def test_a_model_with_many_runs_weighs_as_much_as_one_with_few(level, counts):
    assert fit_log_factor([[level] * count for count in counts]) == pytest.approx(level)
    assert fit_log_factor([[0.0] * 9, [level]]) == pytest.approx(level / 2)


def test_a_calibrated_time_has_the_interval_of_models_that_were_left_out():
    calibration = CompiledCalibration(
        log_growth=0.03, log_factors={"v5e": 0.04}, log_half_width=0.2, runs=3, source="three runs"
    )
    found = calibration.calibrated("v5e", 4, 10.0)
    assert found.value == pytest.approx(10 * math.exp(0.10))
    assert (found.low, found.high) == pytest.approx((10 * math.exp(-0.10), 10 * math.exp(0.30)))
    assert calibration.calibrated("v5e", 1, 10.0).value == pytest.approx(10 * math.exp(0.04))
    assert calibration.calibrated("tpu7x", 1, 10.0) is None
