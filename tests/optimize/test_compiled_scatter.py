import numpy as np
import pytest

from asap.prediction.step_model.step_parts import change_between
from asap.prediction.uncertainty.calibration import load_calibration
from asap.prediction.uncertainty.residual_kernel import COMPILED, log_likelihood
from optimization.tables import Table, compiled_table

MEASURED = load_calibration().full.residual_kernel
TIMES = [times / 4 for times in range(4, 25)]


def likelihood(table: Table, times: float) -> float:
    """Of the residuals of a table where they scatter so many times as widely as measured ones: mean of both views."""
    prior, kernel = table.prior, MEASURED.scattering(times)
    rows = [prior.index[name] for name in table.seconds]
    residuals = np.log(list(table.seconds.values())) - prior.log_time[rows]
    residuals = residuals - kernel.common(float(np.median(residuals)))
    columns = prior.parts[rows].T
    by_setting = kernel.shared(np.stack([prior.apart(row)[:, rows] for row in rows]))
    by_change = kernel.by_change.shared(change_between(list(columns[:, :, None]), list(columns[:, None, :])))
    own = np.eye(len(rows))
    both = (by_setting + kernel.own**2 * own, by_change + kernel.by_change.own**2 * own)
    return float(np.mean([log_likelihood(residuals, covariance) for covariance in both])) / len(rows)


def test_compiled_steps_scatter_as_widely_as_two_tables_of_compilations_say():
    tables = [compiled_table("dense"), compiled_table("moe16")]
    likelihoods = {times: sum(likelihood(table, times) for table in tables) for times in TIMES}
    assert max(likelihoods, key=likelihoods.__getitem__) == pytest.approx(COMPILED, abs=0.25)
    assert likelihoods[COMPILED] > likelihoods[1.0]


def test_residuals_that_scatter_more_correlate_as_before():
    apart = np.array([[0.0, 1.0, 3.0]])
    wider = MEASURED.scattering(3.0)
    assert wider.shared(apart) == pytest.approx(9 * MEASURED.shared(apart))
    assert wider.by_change.variance == pytest.approx(9 * MEASURED.by_change.variance)
    assert wider.variance == pytest.approx(9 * MEASURED.variance)
    assert (wider.limit, wider.reach) == (MEASURED.limit, MEASURED.reach)
