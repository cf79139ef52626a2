"""Stages that do not divide the layers, collectives beside products, and hosts that wait for each kernel."""

import numpy as np
import pytest

from asap.plans import Plan
from asap.prediction.step_model.encoding import step_inputs
from asap.prediction.step_model.groups import Groups
from asap.prediction.step_model.step import predict_step
from asap.prediction.uncertainty.calibration import load_calibration

PLAN = "replica=8 stage=8 microbatches=64 remat=none"


@pytest.fixture
def evaluated(decoder, workload, h100):
    def run(layers, plan=PLAN, **settings):
        work = workload.model_copy(update={"framework": "Megatron-Core", **settings})
        constants = load_calibration().full.resolve_one(Groups.of(h100, work))
        model = decoder.model_copy(update={"layers": layers})
        return predict_step(step_inputs([Plan.parse(plan)], model, work, h100), constants)

    return run


def seconds(value):
    return float(np.squeeze(value))


def test_the_loss_takes_the_place_of_a_layer(evaluated):
    even, counted, fewer = (seconds(evaluated(layers).total) for layers in (32, 30, 24))
    assert fewer < counted < even


def test_layers_that_xla_runs_are_not_counted_so(evaluated):
    even, uneven = (seconds(evaluated(layers, framework="MaxText").compute) for layers in (32, 30))
    assert uneven == even


def test_parts_add_up_where_the_loss_is_not_on_the_slowest_stage(evaluated):
    step = evaluated(30, "stage=2 microbatches=64 remat=none replica=32")
    exposed = step.tensor_exposed + step.sequence_exposed + step.expert_exposed + step.data_exposed
    exposed = exposed + step.replica_exposed + step.slices_exposed + step.stage_exposed + step.transfer_exposed
    parts = step.compute + step.hbm + step.overhead + exposed + step.bubble + step.optimizer
    assert seconds(parts) == pytest.approx(seconds(step.total))


def test_pieces_of_collectives_hide_behind_products(evaluated):
    plan = "replica=8 model=8 microbatches=8 remat=none"
    alone, beside = evaluated(32, plan), evaluated(32, plan, overlaps_tensor=True)
    assert seconds(beside.tensor) == seconds(alone.tensor)
    assert seconds(beside.tensor_exposed) < 0.8 * seconds(alone.tensor_exposed)


def test_nothing_hides_behind_a_host_that_waits_for_each_kernel(evaluated):
    plan = "replica=64 microbatches=2 remat=none"
    ahead, waiting = evaluated(32, plan), evaluated(32, plan, launch_blocking=True)
    assert seconds(waiting.overhead) > seconds(ahead.overhead) + 0.9 * seconds(ahead.launches)
    assert seconds(waiting.replica_exposed) == pytest.approx(seconds(waiting.replica))
