import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from asap.calibration.fit.residual_kernel import common_size, fit_residual_transfer
from asap.prediction.uncertainty.residual_kernel import ResidualTransfer

TRANSFER = ResidualTransfer(reach=0.4, limit=0.2)
RESIDUALS = st.floats(-2, 2)
CHANGES = st.floats(0, 6)


@given(RESIDUALS)
def test_where_nothing_changes_all_is_carried(residual):
    assert TRANSFER.expected(residual, 0.0) == residual


@given(RESIDUALS, CHANGES, CHANGES)
def test_less_is_carried_where_more_changes_and_never_more_than_there_is(residual, one, other):
    near, far = (abs(float(TRANSFER.expected(residual, change))) for change in sorted((one, other)))
    assert far <= near <= abs(residual)
    assert float(TRANSFER.expected(residual, one)) * residual >= 0


@given(st.floats(0.2, 2), st.floats(0.001, 1), CHANGES)
def test_beyond_the_limit_everything_is_carried(residual, more, change):
    assert TRANSFER.expected(residual + more, change) - TRANSFER.expected(residual, change) == pytest.approx(more)


@pytest.mark.parametrize(("common", "own"), [(0.1, 0.02), (0.1, 0.1), (0.02, 0.1)])
def test_the_share_is_that_of_what_a_group_has_in_common(common, own):
    random = np.random.default_rng(7)
    group = random.normal(0, common, 4000)
    known, other = group + random.normal(0, own, 4000), group + random.normal(0, own, 4000)
    learnt = fit_residual_transfer(known, other, np.full(4000, 0.5), ["one"] * 4000, 1.0)
    assert learnt.expected(1.0, 0.5) == pytest.approx(common**2 / (common**2 + own**2), abs=0.05)


def test_the_reach_is_learnt_and_no_pairs_teach_nothing():
    random = np.random.default_rng(7)
    known, change = random.normal(0, 0.1, 2000), random.uniform(0, 2, 2000)
    other = known * np.exp(-change / 0.5) + random.normal(0, 0.01, 2000)
    assert fit_residual_transfer(known, other, change, ["one"] * 2000, 1.0).reach == pytest.approx(0.5, rel=0.05)
    none = np.empty(0)
    assert fit_residual_transfer(none, none, none, [], 1.0) == ResidualTransfer(limit=1.0)


def test_nine_in_ten_runs_miss_by_less_than_the_limit():
    residuals = np.linspace(-1, 1, 1001)
    assert common_size(residuals, ["one"] * 1001) == pytest.approx(0.9, abs=0.01)
