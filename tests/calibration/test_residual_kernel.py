import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import multivariate_t

from asap.calibration.fit.residual_kernel import (
    START,
    ResidualGroup,
    common_size,
    fit_residual_kernel,
    fit_residual_kernels,
    fit_residual_transfer,
    likelihood_of,
)
from asap.prediction.step_model.step_parts import change_between
from asap.prediction.uncertainty.residual_kernel import PRIOR_WEIGHT, ByChange, ResidualKernel, ResidualTransfer

KERNEL = ResidualKernel(deviation=0.2, reach=1.5, own=0.05)
BY_CHANGE = ByChange(deviation=0.3, reach=0.1, own=0.02, common=0.1)
DEGREES, POLICIES = np.meshgrid(np.arange(5.0), [0.0, 1.0, 2.0])
PLANS = np.array([DEGREES.ravel(), POLICIES.ravel()]).T
APART = np.abs(PLANS[:, :, None] - PLANS.T[None, :, :])
PARTS = np.random.default_rng(0).dirichlet(np.full(4, 0.3), len(PLANS)).T
CHANGE = change_between(list(PARTS[:, :, None]), list(PARTS[:, None, :]))


def covariance(kernel):
    return kernel.shared(CHANGE if isinstance(kernel, ByChange) else APART) + kernel.own**2 * np.eye(len(PLANS))


def groups(kernel, count, source, seed=7):
    drawn = multivariate_t(shape=covariance(kernel), df=PRIOR_WEIGHT, seed=seed).rvs(count)
    return [ResidualGroup(source, residuals, APART, CHANGE) for residuals in np.atleast_2d(drawn)]


@pytest.mark.parametrize("kernel", [KERNEL, BY_CHANGE])
def test_the_likelihood_is_that_of_a_multivariate_t(kernel):
    (group,) = groups(kernel, 1, "one")
    expected = multivariate_t(shape=covariance(kernel), df=PRIOR_WEIGHT).logpdf(group.residuals)
    assert likelihood_of(group, kernel) == pytest.approx(expected)
    assert np.diag(covariance(kernel)) == pytest.approx(kernel.variance)


@pytest.mark.parametrize("kernel", [KERNEL, ResidualKernel(deviation=0.1, reach=3.0, own=0.02)])
def test_the_kernel_that_made_the_residuals_is_found(kernel):
    made = [group for seed in range(3) for group in groups(kernel, 30, f"source {seed}", seed)]
    found = fit_residual_kernel(made)
    assert found.own == pytest.approx(kernel.own, rel=0.35)
    assert found.reach == pytest.approx(kernel.reach, rel=0.35)


def test_how_far_a_residual_reaches_over_what_changes_is_found():
    found = fit_residual_kernel([group for seed in range(3) for group in groups(BY_CHANGE, 20, f"source {seed}", seed)])
    assert found.by_change.deviation == pytest.approx(BY_CHANGE.deviation, rel=0.35)
    assert found.by_change.reach == pytest.approx(BY_CHANGE.reach, rel=0.35)


def test_the_odds_are_those_of_the_view_that_tells_of_sources_it_has_not_seen():
    odds = []
    for kernel in (KERNEL, BY_CHANGE):
        found = fit_residual_kernels([each for seed in range(3) for each in groups(kernel, 5, f"source {seed}", seed)])
        assert found.keys() == {None, "source 0", "source 1", "source 2"}
        odds.append(found[None].by_change)
    assert odds[0].odds < 0.5 < odds[1].odds


def test_a_source_with_many_groups_weighs_no_more():
    few, many = groups(ResidualKernel(deviation=0.02, reach=1.5), 2, "few"), groups(KERNEL, 30, "many")
    as_one_source = [ResidualGroup("many", each.residuals, each.apart, each.change) for each in few]
    assert fit_residual_kernel([*few, *many]).deviation < fit_residual_kernel([*as_one_source, *many]).deviation


def test_no_groups_teach_nothing():
    assert fit_residual_kernels([]) == {None: START}


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
    assert common_size(np.linspace(-1, 1, 1001), ["one"] * 1001) == pytest.approx(0.9, abs=0.01)
