"""What stacks hold beside the architecture: gradients, gathered layers, what comes back from the host."""

import numpy as np
import pytest

from asap.hardware.names import resolve_hardware
from asap.models import Workload, count_parameters
from asap.plans import Plan
from asap.prediction.step_model.encoding import step_inputs
from tests.prediction.test_memory import H100, MODEL, WORK, held


def test_transformer_engine_keeps_the_inputs_of_fp8_products_in_fp8():
    """By token and layer: the inputs of four products, of widths 4096, 4096, 14336 and 4096 (kept in bf16 besides)."""
    bf16 = WORK.model_copy(update={"framework": "Megatron-Core"})
    fp8 = bf16.model_copy(update={"precision": "fp8"})
    wide, narrow = (held("data=64 remat=none", work=work).activations for work in (bf16, fp8))
    tokens = WORK.tokens / 64
    assert float(np.sum(wide - narrow)) == pytest.approx(tokens * 32 * (4096 + 4096 + 14336 - 4096))
    xla = WORK.model_copy(update={"precision": "fp8"})
    assert held("data=64 remat=none", work=xla).activations == held("data=64 remat=none").activations


def test_gradients_are_as_wide_as_the_stack_accumulates_them():
    work = WORK.model_copy(update={"framework": "Megatron-Core", "zero_stage": 1})
    narrow, wide = (
        held("replica=64 remat=full", work=work.model_copy(update={"gradient_precision": precision})).gradients
        for precision in ("bf16", "fp32")
    )
    assert wide == 2 * narrow


def test_xla_holds_all_keys_and_values_where_their_heads_do_not_divide():
    """Llama-3.1 8B on sixteen tensor ranks: eight heads of keys and values, whose weights XLA leaves whole."""
    divided, whole = (step_inputs([Plan.parse(f"data={64 // n} model={n}")], MODEL, WORK, H100) for n in (8, 16))
    assert float(np.squeeze(divided.key_value_parts)) == 8
    assert float(np.squeeze(whole.key_value_parts)) == 1
    megatron = WORK.model_copy(update={"framework": "Megatron-LM"})
    repeated = step_inputs([Plan.parse("replica=4 model=16")], MODEL, megatron, H100)
    assert float(np.squeeze(repeated.key_value_parts)) == 8


def test_megatron_shards_the_optimizer_of_no_expert_over_the_expert_axis_too(mixture):
    core = WORK.model_copy(update={"framework": "Megatron-Core", "zero_stage": 1})

    def optimizer(plan, model):
        return float(np.sum(held(plan, model, core).optimizer))

    dense = mixture.model_copy(update={"expert_d_ff": 1})
    assert optimizer("expert=16", dense) == pytest.approx(optimizer("replica=16", dense), rel=0.01)
    assert optimizer("expert=16", mixture) == pytest.approx(optimizer("replica=16", mixture), rel=0.01)


def test_replicas_of_a_fully_sharded_model_hold_copies_and_devices_that_share_a_sequence_do_not():
    hybrid = WORK.model_copy(update={"framework": "PyTorch FSDP", "zero_stage": 3})
    sharded = held("data=64", work=hybrid).optimizer
    assert held("replica=8 data=8", work=hybrid).optimizer == pytest.approx(8 * sharded)
    assert held("data=8 seq=8", work=hybrid).optimizer == pytest.approx(sharded)


OFFLOADED = "data=64 remat=full offload=optimizer+parameters"


@pytest.mark.parametrize("framework", ["torchtitan", "Axolotl FSDP", "Accelerate FSDP", "DeepSpeed"])
def test_what_the_host_updates_leaves_gathered_layers_and_activations_on_the_device(framework):
    work = WORK.model_copy(update={"framework": framework, "zero_stage": 3 if framework == "DeepSpeed" else 0})
    moved, here = held(OFFLOADED, work=work), held("data=64 remat=full", work=work)
    assert np.all(moved.parameters + moved.gradients + moved.optimizer == 0)
    assert np.allclose(moved.total, here.activations + here.temporaries + here.collectives)
    updated = held("data=64 remat=full offload=optimizer", work=WORK.model_copy(update={"framework": "Megatron-Core"}))
    assert np.all(updated.gradients > 0)


def test_an_optimizer_inside_the_backward_pass_holds_the_gradients_of_a_layer_or_of_the_embedding():
    work = WORK.model_copy(update={"framework": "torchtune FSDP"})
    early = work.model_copy(update={"optimizer_in_backward": True})
    whole, part = (float(np.sum(held("data=64", work=one).gradients)) for one in (work, early))
    assert part < whole / 16


def test_the_trainer_keeps_whole_gradients_from_microbatch_to_microbatch_under_fsdp():
    work = WORK.model_copy(update={"framework": "Accelerate FSDP"})
    whole = 2 * count_parameters(MODEL).total
    one, four = (held(f"data=64 remat=full microbatches={count}", work=work) for count in (1, 4))
    assert np.allclose(four.gradients - one.gradients, whole, rtol=0.01)
    replicas = [held(f"replica=64 remat=full microbatches={count}", work=work).gradients for count in (1, 4)]
    assert np.array_equal(*replicas)
    titan = work.model_copy(update={"framework": "torchtitan"})
    assert np.array_equal(held("data=64 remat=full microbatches=4", work=titan).gradients, one.gradients)
    each = work.model_copy(update={"sync_each_batch": True})
    assert np.array_equal(held("data=64 remat=full microbatches=4", work=each).gradients, one.gradients)


V5P = resolve_hardware("v5p", topology="2x2x4").slice
UNLIKE = MODEL.model_copy(update={"sliding_window": 1024, "global_layer_every": 4})
SMALL = Workload(global_batch=16, sequence_length=1024, framework="MaxText")


@pytest.mark.parametrize("model", [MODEL, UNLIKE])
def test_an_update_holds_what_comes_back_from_host_memory_at_most_twice(model):
    in_hbm = held("model=16 remat=full", model, SMALL, V5P).optimizer
    back = held("model=16 remat=full offload=optimizer", model, SMALL, V5P).optimizer
    assert 0.5 * in_hbm < back < 2 * in_hbm


def test_fewer_moments_are_on_their_way_at_once_where_layers_differ():
    alike, unlike = (held("model=16 remat=full offload=optimizer", model, SMALL, V5P) for model in (MODEL, UNLIKE))
    assert 0 < unlike.optimizer < alike.optimizer


def test_the_backward_pass_of_a_block_has_weights_of_several_layers_in_hand():
    alike, unlike = (held("data=16 remat=none", model, WORK, V5P) for model in (MODEL, UNLIKE))
    assert unlike.collectives > 1.5 * alike.collectives
