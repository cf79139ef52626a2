"""What the first proposal loses on published groups, on groups that are made up."""

import numpy as np
import pytest

from asap.calibration.backtest.loop import TuningProblem, first_proposal, score_advice, settings_vary
from asap.plans import Plan
from asap.prediction.uncertainty.residual_kernel import ResidualKernel, ResidualTransfer, Widths

PLANS = [Plan.parse(f"data=8 microbatches={count} remat={policy}") for count in (1, 2) for policy in ("none", "full")]
MEASURED = np.array([1.0, 1.3, 1.1, 1.4])
KERNEL = ResidualKernel(deviation=0.1, reach=1.0)


def group(predicted, plans=PLANS, source="one"):
    widths = Widths(least=0.05, whole=0.1)
    modelled = np.array(predicted)
    return TuningProblem(source, plans, modelled, MEASURED, ResidualTransfer(), widths, KERNEL, modelled[:, None])


def test_a_model_that_is_right_loses_nothing_from_wherever_it_starts():
    assert [first_proposal(group(2 * MEASURED), now) for now in range(len(PLANS))] == [0, 0, 0, 0]
    assert score_advice([group(2 * MEASURED)]).mean_regret == 0


def test_a_model_that_sees_no_difference_proposes_nothing():
    found = score_advice([group(np.ones(len(PLANS)))])
    assert found.mean_regret == found.regret_now == pytest.approx(0.2)


def test_sources_weigh_the_same_and_meshes_alone_do_not_count():
    meshes = [Plan.parse(f"data={8 // degree} model={degree} remat=full") for degree in (1, 2, 4, 8)]
    assert not settings_vary(meshes)
    assert score_advice([group(MEASURED, meshes)]).groups == 0
    found = score_advice([group(MEASURED), group(MEASURED), group(np.ones(len(PLANS)), source="other")])
    assert (found.groups, found.sources) == (3, 2)
    assert found.macro_regret == pytest.approx(0.1)
