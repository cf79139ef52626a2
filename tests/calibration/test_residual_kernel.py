import numpy as np
import pytest
from scipy.stats import multivariate_t

from asap.calibration.fit.residual_kernel import START, ResidualGroup, fit_residual_kernel, log_likelihood
from asap.prediction.uncertainty.residual_kernel import PRIOR_WEIGHT, ResidualKernel

KERNEL = ResidualKernel(deviation=0.2, reach=1.5, own=0.05)
DEGREES, POLICIES = np.meshgrid(np.arange(5.0), [0.0, 1.0, 2.0])
PLANS = np.array([DEGREES.ravel(), POLICIES.ravel()]).T
APART = np.abs(PLANS[:, :, None] - PLANS.T[None, :, :])


def covariance(kernel):
    return kernel.deviation**2 * kernel.correlation(APART) + kernel.own**2 * np.eye(len(PLANS))


def groups(kernel, count, source, seed=7):
    drawn = multivariate_t(shape=covariance(kernel), df=PRIOR_WEIGHT, seed=seed).rvs(count)
    return [ResidualGroup(source, residuals, APART) for residuals in np.atleast_2d(drawn)]


def test_the_likelihood_is_that_of_a_multivariate_t():
    (group,) = groups(KERNEL, 1, "one")
    expected = multivariate_t(shape=covariance(KERNEL), df=PRIOR_WEIGHT).logpdf(group.residuals)
    assert log_likelihood(group, KERNEL) == pytest.approx(expected)


@pytest.mark.parametrize("kernel", [KERNEL, ResidualKernel(deviation=0.1, reach=3.0, own=0.02)])
def test_the_kernel_that_made_the_residuals_is_found(kernel):
    made = [group for seed in range(3) for group in groups(kernel, 30, f"source {seed}", seed)]
    found = fit_residual_kernel(made, 0.3)
    assert found.own == pytest.approx(kernel.own, rel=0.35)
    assert found.reach == pytest.approx(kernel.reach, rel=0.35)
    assert found.limit == 0.3


def test_a_source_with_many_groups_weighs_no_more():
    few, many = groups(ResidualKernel(deviation=0.02, reach=1.5), 2, "few"), groups(KERNEL, 30, "many")
    as_one_source = [ResidualGroup("many", each.residuals, each.apart) for each in few]
    assert (
        fit_residual_kernel([*few, *many], 0.3).deviation < fit_residual_kernel([*as_one_source, *many], 0.3).deviation
    )


def test_no_groups_teach_nothing():
    assert fit_residual_kernel([], 0.3) == START.model_copy(update={"limit": 0.3})
