import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from asap.calibration.fit.intervals import fair_level, weighted_quantile, widths_of
from asap.prediction.uncertainty.calibration import Widths, load_calibration

distances = st.floats(0.0, 20.0)


def all_widths() -> list[Widths]:
    known = load_calibration()
    fits = [known.full, *known.without.values()]
    return [width for fit in fits for width in (fit.step_widths, fit.anchored_widths)]


@given(distances, distances)
def test_intervals_never_narrow_with_distance(one, other):
    near, far = sorted((one, other))
    assert all(width.at(near) <= width.at(far) for width in all_widths())


def test_the_half_width_covers_nine_of_ten():
    residuals = np.linspace(-1, 1, 2001)
    widths = widths_of(residuals, np.zeros(2001), ["s"] * 2001, (1.0,))
    assert (np.abs(residuals) <= widths.at(0.0)).mean() == pytest.approx(0.9, abs=0.01)


def test_a_bin_without_residuals_takes_its_neighbours_width():
    residuals = np.concatenate([np.full(50, 0.1), np.full(50, 0.5)])
    places = np.concatenate([np.zeros(50), np.full(50, 1.5)])
    widths = widths_of(residuals, places, ["s"] * 100, (1.0, 2.0))
    assert widths.half_widths == (0.1, 0.5, 0.5)


def test_a_heavy_value_rules_a_weighted_quantile():
    values, weights = np.array([1.0, 2.0, 3.0]), np.array([1.0, 1.0, 98.0])
    assert weighted_quantile(values, weights, 0.5) == 3.0


def test_sources_that_err_together_need_a_higher_level():
    generator = np.random.default_rng(0)
    names = [f"source {number}" for number in range(40) for _ in range(50)]
    own, common = generator.normal(size=2000), np.repeat(generator.normal(size=40), 50)
    alone = fair_level(own, np.zeros(2000), names, (1.0,))
    together = fair_level(own / 10 + common, np.zeros(2000), names, (1.0,))
    assert alone < together
