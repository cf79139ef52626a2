import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from asap.calibration.fit.residual_transfer import common_size, fit_residual_transfer
from asap.plans import Plan
from asap.prediction.uncertainty.residual_transfer import ResidualTransfer, plan_distance

TRANSFER = ResidualTransfer(edges=(1.0, 2.0), shares=(0.8, 0.4, 0.1), limit=0.2)
RESIDUALS = st.floats(-2, 2)
DISTANCES = st.floats(0, 6)


@given(RESIDUALS)
def test_another_run_of_the_same_plan_shares_all(residual):
    assert TRANSFER.expected(residual, 0.0) == residual


def test_what_one_plan_alone_keeps_in_host_memory_sets_them_apart():
    here, there = Plan.parse("data=16 remat=full"), Plan.parse("data=16 remat=full offload=optimizer")
    assert plan_distance(here, here) == 0
    assert plan_distance(here, there) == plan_distance(there, here) > 0


@given(RESIDUALS, DISTANCES, DISTANCES)
def test_less_is_carried_farther_and_never_more_than_there_is(residual, one, other):
    near, far = (abs(float(TRANSFER.expected(residual, distance))) for distance in sorted((one, other)))
    assert far <= near <= abs(residual)
    assert float(TRANSFER.expected(residual, one)) * residual >= 0


@given(st.floats(0.2, 2), st.floats(0.001, 1), DISTANCES)
def test_beyond_the_limit_everything_is_carried(residual, more, distance):
    assert TRANSFER.expected(residual + more, distance) - TRANSFER.expected(residual, distance) == pytest.approx(more)


@pytest.mark.parametrize(("common", "own"), [(0.1, 0.02), (0.1, 0.1), (0.02, 0.1)])
def test_the_share_is_that_of_what_a_group_has_in_common(common, own):
    random = np.random.default_rng(7)
    group = random.normal(0, common, 4000)
    known, other = group + random.normal(0, own, 4000), group + random.normal(0, own, 4000)
    learnt = fit_residual_transfer(known, other, np.full(4000, 0.5), ["one"] * 4000, (1.0,), 1.0)
    share = common**2 / (common**2 + own**2)
    assert learnt.shares == pytest.approx((share, share), abs=0.05)


def test_farther_pairs_never_carry_more_and_too_few_teach_nothing():
    random = np.random.default_rng(7)
    known = random.normal(0, 0.1, 240)
    distances = np.repeat([0.5, 1.5, 2.5], [100, 100, 40])
    other = known * np.repeat([0.5, 0.9, 0.1], [100, 100, 40])
    learnt = fit_residual_transfer(known[:220], other[:220], distances[:220], ["one"] * 220, (1.0, 2.0), 1.0)
    assert learnt.shares == (0.5, 0.5, 0.5)
    assert fit_residual_transfer(known, other, distances, ["one"] * 240, (1.0, 2.0), 1.0).shares == (0.5, 0.5, 0.1)


def test_nine_in_ten_runs_miss_by_less_than_the_limit():
    residuals = np.linspace(-1, 1, 1001)
    assert common_size(residuals, ["one"] * 1001) == pytest.approx(0.9, abs=0.01)
