import numpy as np
import pytest

from asap.calibration.backtest.scores import score_ranking

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
