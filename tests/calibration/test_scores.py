import numpy as np
import pytest

from asap.calibration.backtest.loop import TuningProblem, evaluations, score_loop
from asap.calibration.backtest.scores import score_ranking
from asap.plans import Plan
from asap.prediction.uncertainty.residual_kernel import ResidualKernel, ResidualTransfer, Widths

SLOW, FAST = np.array([3.0, 2.0, 1.0]), np.array([1.0, 2.0, 3.0])


@pytest.mark.parametrize(("predicted", "tau"), [(FAST, 1.0), (SLOW, -1.0)])
def test_tau_tells_the_right_order_from_the_reverse(predicted, tau):
    assert score_ranking([(predicted, FAST)]).kendall_tau == tau


def test_ties_count_for_neither_side():
    tied = np.array([1.0, 2.0, 2.0])
    assert score_ranking([(tied, tied)]).kendall_tau == 1.0
    assert score_ranking([(tied, FAST)]).kendall_tau == pytest.approx(2 / 6**0.5, abs=1e-4)


def test_a_model_that_orders_nothing_gets_no_credit():
    equal = np.ones(3)
    assert score_ranking([(equal, FAST)]).kendall_tau == 0
    assert score_ranking([(equal, FAST), (FAST, FAST)]).kendall_tau == 0.5


PLANS = [Plan.parse(f"data={16 // n} model={n}") for n in (1, 2, 4, 8)]


NEAR, FAR = ResidualKernel(deviation=0.1, reach=0.1), ResidualKernel(deviation=0.1, reach=3.0)


def problem(predicted, measured, kernel=NEAR) -> TuningProblem:
    widths = Widths(least=0.05, whole=0.1)
    times = np.array(predicted, dtype=float), np.array(measured, dtype=float)
    return TuningProblem("source", PLANS, *times, ResidualTransfer(), widths, kernel, times[0][:, None])


@pytest.mark.parametrize(
    ("measured", "needed"), [([10, 20, 30, 40], 1), ([40, 30, 20, 10], 4), ([1.019, 1.0, 2, 3], 1)],
    ids=["a right order", "as many as it puts before the best", "two percent is near enough"],
)  # fmt: skip
def test_how_many_evaluations_an_order_needs(measured, needed):
    assert evaluations(problem([1, 2, 3, 4], measured)) == needed


def test_a_run_corrects_the_plans_near_it():
    slow_where_data_is_large = [1.0, 1.1, 1.2, 1.25], [3.0, 3.0, 1.9, 1.0]
    assert evaluations(problem(*slow_where_data_is_large, FAR)) < evaluations(problem(*slow_where_data_is_large))


def test_scores():
    scored = score_loop([problem([1, 2, 3, 4], [1, 2, 3, 4]), problem([1, 2, 3, 4], [2, 1, 3, 4])])
    assert scored.model_dump() == {"groups": 2, "mean_evaluations": 1.5, "worst_evaluations": 2, "within_first": 0.5}
    assert score_loop([]).groups == 0
