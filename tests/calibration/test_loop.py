import numpy as np

from asap.calibration.backtest.loop import TuningProblem, evaluations, score_loop
from asap.plans import Plan
from asap.prediction.uncertainty.residual_kernel import ResidualKernel, ResidualTransfer, Widths

PLANS = [Plan.parse(f"data={16 // n} model={n}") for n in (1, 2, 4, 8)]


NEAR, FAR = ResidualKernel(deviation=0.1, reach=0.1), ResidualKernel(deviation=0.1, reach=3.0)


def problem(predicted, measured, kernel=NEAR) -> TuningProblem:
    widths = Widths(least=0.05, whole=0.1)
    times = np.array(predicted, dtype=float), np.array(measured, dtype=float)
    return TuningProblem("source", PLANS, *times, ResidualTransfer(), widths, kernel, times[0][:, None])


def test_a_right_order_needs_one_evaluation():
    assert evaluations(problem([1, 2, 3, 4], [10, 20, 30, 40])) == 1


def test_a_wrong_order_needs_as_many_as_it_puts_before_the_best():
    assert evaluations(problem([1, 2, 3, 4], [40, 30, 20, 10])) == 4


def test_a_run_corrects_the_plans_near_it():
    slow_where_data_is_large = [1.0, 1.1, 1.2, 1.25], [3.0, 3.0, 1.9, 1.0]
    assert evaluations(problem(*slow_where_data_is_large, FAR)) < evaluations(problem(*slow_where_data_is_large))


def test_two_percent_is_near_enough():
    assert evaluations(problem([1, 2, 3, 4], [1.019, 1.0, 2, 3])) == 1


def test_scores():
    scored = score_loop([problem([1, 2, 3, 4], [1, 2, 3, 4]), problem([1, 2, 3, 4], [2, 1, 3, 4])])
    assert scored.model_dump() == {"groups": 2, "mean_evaluations": 1.5, "worst_evaluations": 2, "within_first": 0.5}
    assert score_loop([]).groups == 0
