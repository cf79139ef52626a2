import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from asap.calibration.fit.intervals import conformal_quantile, fit_plan_widths, fit_step_interval, weighted_quantile
from asap.diagnosis.facts import STEP_TIME_VARIATION
from asap.prediction.uncertainty.calibration import load_calibration
from asap.prediction.uncertainty.residual_kernel import Widths
from asap.prediction.uncertainty.step_interval import DOUBTFUL, StepInterval

changes = st.floats(0.0, 20.0)


def all_widths() -> list[Widths]:
    known = load_calibration()
    fits = [known.full, *known.without.values()]
    of_plans = [widths for fit in fits for widths in (fit.ratio_widths, fit.anchored_widths)]
    return [widths.of(mixture) for widths in of_plans for mixture in (False, True)]


def sweeps(sources: int, rows: int, common: float, seed: int = 0) -> tuple[np.ndarray, list[str]]:
    """Residuals of sources whose runs err together."""
    generator = np.random.default_rng(seed)
    shared = np.repeat(generator.normal(size=sources) * common, rows)
    return shared + generator.normal(size=sources * rows) / 10, [f"source {n // rows}" for n in range(sources * rows)]


@given(changes, changes)
def test_intervals_never_narrow_where_more_changes(one, other):
    near, far = sorted((one, other))
    assert all(width.at(near) <= width.at(far) for width in all_widths())


def test_a_further_source_is_covered_nine_times_in_ten():
    residuals, names = sweeps(200, 20, common=1.0)
    quantile = conformal_quantile(np.abs(residuals), names)
    fresh, _ = sweeps(200, 20, common=1.0, seed=1)
    assert (np.abs(fresh) <= quantile).mean() == pytest.approx(0.9, abs=0.05)


def test_few_sources_need_a_wider_interval():
    residuals, names = sweeps(200, 20, common=1.0)
    few = [conformal_quantile(np.abs(residuals[start : start + 200]), names[start : start + 200]) for start in
           range(0, 4000, 200)]  # fmt: skip
    assert np.mean(few) > conformal_quantile(np.abs(residuals), names)


def test_one_large_sweep_counts_as_one_source():
    residuals, names = sweeps(20, 20, common=1.0)
    sweep = np.full(5000, 0.01)
    quantile = conformal_quantile(np.abs(np.concatenate([residuals, sweep])), [*names, *["sweep"] * 5000])
    assert quantile > 0.8 * conformal_quantile(np.abs(residuals), names)


def test_the_square_of_a_width_grows_with_what_changes():
    generator, names = np.random.default_rng(0), np.repeat([f"source {n}" for n in range(40)], 50).tolist()
    change, mixture = np.tile(np.linspace(0.1, 5.0, 50), 40), np.repeat(np.arange(40) % 2, 50).astype(float)
    spread = np.sqrt(STEP_TIME_VARIATION**2 + (0.4**2 + 0.8**2 * mixture) * change)
    widths = fit_plan_widths(generator.laplace(size=2000) * spread / np.sqrt(2), change, mixture, names)
    assert widths.of(True).whole == pytest.approx(np.sqrt(5) * widths.of(False).whole, rel=0.2)
    assert widths.of(False).at(4.0) == pytest.approx(2 * widths.of(False).at(1.0), rel=0.05)
    assert 0 < widths.of(False).at(0.0) == widths.of(True).at(0.0) < 0.1


def test_what_is_harder_to_predict_gets_a_wider_interval():
    residuals, names = sweeps(20, 50, common=0.1)
    network = np.tile(np.linspace(0.0, 1.0, 50), 20)
    doubts = dict.fromkeys(("distance", "communication", "launches", "experts", "unstated", *DOUBTFUL), np.zeros(1000))
    doubts |= {"any": np.ones(1000), "network": network}
    interval = fit_step_interval(residuals * (1 + 5 * network), doubts, names)
    easy, hard = (interval.at({name: value[row : row + 1] for name, value in doubts.items()}) for row in (0, 49))
    assert hard > 2 * easy


@given(st.floats(0.0, 1.0), st.floats(0.0, 1.0))
def test_what_is_not_said_only_widens(one, other):
    less, more = sorted((one, other))
    interval = StepInterval(spreads={"any": 0.1}, quantile=1.6)
    assert width(interval, less) <= width(interval, more)


def width(interval: StepInterval, unstated: float) -> float:
    return interval.at({"any": np.ones(1), "unstated": np.array([unstated])})


def test_a_heavy_value_rules_a_weighted_quantile():
    values, weights = np.array([1.0, 2.0, 3.0]), np.array([1.0, 1.0, 98.0])
    assert weighted_quantile(values, weights, 0.5) == 3.0
