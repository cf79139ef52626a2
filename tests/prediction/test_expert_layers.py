"""What layers of experts cost besides their matrix products: launches, all-to-alls, reductions of copies."""

from itertools import pairwise

import numpy as np
import pytest

from asap.plans import Plan
from asap.prediction.step_model.activations import activations
from asap.prediction.step_model.encoding import step_inputs
from asap.prediction.step_model.groups import Groups
from asap.prediction.step_model.step import predict_step
from asap.prediction.uncertainty.calibration import load_calibration


@pytest.fixture
def evaluated(mixture, workload, h100):
    def run(plan, model=None, **settings):
        work = workload.model_copy(update={"framework": "Megatron-Core", **settings})
        constants = load_calibration().full.resolve_one(Groups.of(h100, work))
        return predict_step(step_inputs([Plan.parse(plan)], model or mixture, work, h100), constants)

    return run


def seconds(value):
    return float(np.squeeze(value))


def test_the_more_of_a_layer_is_captured_the_fewer_launches_are_left(evaluated):
    plan = "replica=8 expert=8 microbatches=8 remat=none"
    captured = ((), ("moe_router",), ("moe_router", "moe_preprocess"), ("attn", "moe_router", "moe_preprocess"))
    left = [evaluated(plan, cuda_graphs="module", graph_modules=modules) for modules in captured]
    left.append(evaluated(plan, cuda_graphs="step"))
    for more, fewer in pairwise(left):
        assert seconds(fewer.launches) < seconds(more.launches)
        assert seconds(fewer.total) < seconds(more.total)


def test_a_host_that_counts_tokens_launches_nothing_ahead(evaluated):
    plan = "replica=8 expert=8 microbatches=1 remat=none"
    counting, fixed = evaluated(plan), evaluated(plan, capacity_factor=1.0)
    assert seconds(counting.launches) == pytest.approx(seconds(fixed.launches))
    assert seconds(counting.compute) == seconds(fixed.compute)
    assert seconds(counting.overhead) > seconds(fixed.overhead) + 0.5 * seconds(counting.launches)


def test_all_to_alls_hide_behind_another_microbatch(evaluated):
    plan = "replica=8 expert=8 microbatches=8 remat=none"
    alone, beside = evaluated(plan), evaluated(plan, overlaps_experts=True)
    assert seconds(beside.expert) == seconds(alone.expert)
    assert seconds(beside.expert_exposed) < 0.8 * seconds(alone.expert_exposed)


@pytest.mark.parametrize(("over", "copies"), [((), True), (("model",), False)])
def test_split_experts_reduce_each_copy_of_a_token(evaluated, mixture, over, copies):
    plan = "replica=8 expert=4 model=2 microbatches=8 remat=none"
    more = mixture.model_copy(update={"experts_per_token": 2 * mixture.experts_per_token})
    few, many = (seconds(evaluated(plan, model, experts_over=over).tensor) for model in (mixture, more))
    assert (many > 1.2 * few) == copies
    assert many >= few


def test_what_experts_write_is_kept_where_it_is_weighted_after_them(mixture, workload, h100):
    def kept(framework):
        work = workload.model_copy(update={"framework": framework, "compiled": True})
        return seconds(activations(step_inputs([Plan.parse("expert=64 remat=none")], mixture, work, h100)).kept)

    copies = workload.sequence_length * 8 * mixture.experts_per_token * mixture.d_model * 2
    assert kept("torchtitan") - kept("Megatron-Core") == pytest.approx(copies, rel=0.01)


def test_a_node_that_forwards_tokens_is_sent_fewer(evaluated, mixture):
    plan = "expert=16 replica=4 microbatches=8 remat=none"
    many = mixture.model_copy(update={"experts_per_token": 8})
    copies, once, unsaid = (evaluated(plan, many, expert_dispatcher=kind) for kind in ("all_to_all", "deepep", None))
    assert seconds(once.expert) < 0.5 * seconds(copies.expert)
    assert seconds(unsaid.expert) == seconds(copies.expert)


def test_gathering_tokens_sends_more_than_exchanging_them_by_devices_over_experts_of_a_token(evaluated, mixture):
    plan = "expert=8 replica=1 microbatches=8 remat=none"
    gathered, exchanged = (evaluated(plan, mixture, expert_dispatcher=kind) for kind in ("all_gather", "all_to_all"))
    ratio = seconds(gathered.expert) / seconds(exchanged.expert)
    assert ratio == pytest.approx(8 / mixture.experts_per_token, rel=0.25)


def test_multi_token_prediction_takes_a_layer_and_a_loss(evaluated, mixture):
    plan = "replica=8 expert=8 microbatches=8 remat=none"
    one, more = (
        evaluated(plan, mixture.model_copy(update={"mtp_layers": layers, "layers": mixture.layers - layers}))
        for layers in (0, 1)
    )
    assert seconds(more.tensor) == seconds(one.tensor)
    assert seconds(more.expert) == pytest.approx(seconds(one.expert))
    assert seconds(more.compute) > seconds(one.compute)


def test_routing_in_pytorch_passes_over_hbm_more_often_the_less_is_fused(evaluated):
    plan = "data=64 remat=none"
    fused = evaluated(plan)
    compiled, eager = (evaluated(plan, framework="torchtitan", compiled=compiled) for compiled in (True, False))
    assert seconds(fused.hbm) < seconds(compiled.hbm) < seconds(eager.hbm)
