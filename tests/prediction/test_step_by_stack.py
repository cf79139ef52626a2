"""Steps as stacks take them: gradients, optimizers, kernels, experts."""

import numpy as np
import pytest

from asap.hardware.names import resolve_hardware
from asap.models import count_parameters
from asap.plans import Plan
from asap.prediction.step_model.compute import compute
from asap.prediction.step_model.device_parameters import owned_parameters
from asap.prediction.step_model.encoding import step_inputs
from asap.prediction.step_model.groups import Groups
from asap.prediction.uncertainty.calibration import load_calibration
from tests.prediction.test_step import evaluated, parts


def test_an_optimizer_that_is_sharded_gathers_parameters_instead_of_gradients(decoder, workload, h100):
    def reduction(stage):
        work = workload.model_copy(update={"zero_stage": stage})
        return evaluated("replica=64 remat=full", decoder, work, h100).replica

    assert reduction(1) == pytest.approx(0.75 * reduction(0), rel=0.01)  # fp32 gradients, bf16 parameters


def test_megatron_reduces_gradients_after_the_backward_pass(decoder, workload, h100):
    found = evaluated("replica=64 remat=full", decoder, workload, h100)
    assert found.replica_exposed == pytest.approx(found.replica)


def test_buckets_of_gradients_each_take_the_turns_of_their_ring(decoder, workload, h100):
    """Of bf16 gradients 25 MiB at once, in DistributedDataParallel."""

    def reduction(framework, replicas):
        work = workload.model_copy(update={"framework": framework, "zero_stage": 0})
        hardware = resolve_hardware(f"h100-{replicas}").slice
        return parts(evaluated(f"replica={replicas} remat=none", decoder, work, hardware))["replica"]

    def in_buckets(replicas):
        return reduction("nanotron", replicas) - reduction(None, replicas)

    owned = owned_parameters(step_inputs([Plan.parse("replica=64 remat=none")], decoder, workload, h100)).total
    buckets = 2 * float(np.squeeze(owned)) / (25 * 2**20)
    network, link = h100.chip.network.latency, h100.chip.scaleup.latency
    assert in_buckets(64) == pytest.approx(2 * buckets * (7 * network + 56 * link), rel=0.01)
    assert in_buckets(256) == pytest.approx(2 * buckets * (31 * network + 224 * link), rel=0.01)


def test_the_processors_of_a_node_run_an_optimizer_that_fsdp_keeps_there(decoder, workload, h100):
    work, bytes_each = workload.model_copy(update={"framework": "PyTorch FSDP"}), 4 + 2 * 8 + 4
    there = evaluated("data=64 remat=full offload=optimizer", decoder, work, h100).optimizer
    assert there == pytest.approx(count_parameters(decoder).total / 64 * bytes_each / (1.2e11 / 8), rel=0.05)


def test_sequence_parallelism_gathers_once_more_for_the_backward_pass(decoder, workload, h100):
    def tensor(on):
        work = workload.model_copy(update={"sequence_parallel": on})
        return evaluated("replica=8 model=8 microbatches=8 remat=none", decoder, work, h100).tensor

    assert tensor(True) == pytest.approx(5 / 4 * tensor(False))


@pytest.mark.parametrize(("chip", "slower", "usual"), [
    ("h100-8", 75 / 35, "flash attention 2"), ("a100-80gb-8", 1.0, "flash attention 2"),
    ("b200-8", 1613 / 362, "cudnn flash"),
])  # fmt: skip
def test_attention_kernels_of_an_earlier_generation_are_slower_on_later_chips(chip, slower, usual, decoder, workload):
    hardware = resolve_hardware(chip).slice
    fit = load_calibration().full

    def attention(kernel):
        work = workload.model_copy(update={"sequence_length": 32768, "framework": "PyTorch FSDP", "attention": kernel})
        inputs = step_inputs([Plan.parse("data=8")], decoder, work, hardware)
        return compute(inputs, fit.resolve_one(Groups.of(hardware, work))).layer_attention

    assert attention("flash attention 2") == pytest.approx(slower * attention("cudnn flash"), rel=0.01)
    assert attention(None) == pytest.approx(attention(usual), rel=0.4)
    assert attention("varlen") == attention("flash attention 2")
    assert attention("varlen (flash attention 4)") == attention("flash attention 4")


def test_a_compiled_model_passes_less_often_over_hbm(decoder, workload, h100):
    def hbm(**says):
        work = workload.model_copy(update={"framework": "torchtitan", **says})
        return float(np.squeeze(evaluated("data=64", decoder, work, h100).hbm))

    assert hbm(compiled=True) < 0.8 * hbm(compiled=False)
    assert hbm() == hbm(compiled=False)


def test_whole_experts_need_no_tensor_parallel_collectives_of_their_own(mixture, workload, h100):
    wide, plan = mixture.model_copy(update={"experts": 64}), "model=4 expert=2 replica=8 microbatches=8 remat=none"
    work = workload.model_copy(update={"framework": "Megatron-Core", "sequence_parallel": True})
    split = evaluated(plan, wide, work, h100)
    whole = evaluated(plan, wide, work.model_copy(update={"experts_over": ("model",)}), h100)
    assert whole.tensor == pytest.approx(split.tensor / (1 + wide.experts_per_token))
    assert whole.expert > split.expert  # to eight devices instead of two
    assert whole.compute < split.compute  # products as wide as an expert


def test_experts_that_lie_over_context_devices_are_reduced_over_fewer_copies(mixture, workload, h100):
    wide, plan = mixture.model_copy(update={"experts": 64}), "seq=4 expert=2 replica=8 microbatches=8 remat=none"
    work = workload.model_copy(update={"framework": "Megatron-Core", "context_parallel": "ring"})
    copied = evaluated(plan, wide, work, h100)
    folded = evaluated(plan, wide, work.model_copy(update={"experts_over": ("seq",)}), h100)
    assert folded.replica < copied.replica
    assert folded.optimizer == pytest.approx(copied.optimizer)  # ZeRO shards what copies share


def test_tokens_go_to_their_experts_again_where_the_mlp_is_computed_again(mixture, workload, h100):
    kept, again = (evaluated(f"data=8 expert=8 remat={policy}", mixture, workload, h100) for policy in ("none", "full"))
    assert again.expert == pytest.approx(1.5 * kept.expert)


def test_each_product_whose_output_is_saved_is_not_computed_again(decoder, workload, h100):
    constants = load_calibration().full.resolve_one(Groups.of(h100, workload))

    def layer(policy: str) -> float:
        inputs = step_inputs([Plan.parse(f"replica=64 remat={policy}")], decoder, workload, h100)
        return float(np.sum(compute(inputs, constants).layer_matmul))

    assert layer("query+key+value+context+out+gate+up") == layer("minimal")
    assert layer("minimal") < layer("query+gate") < layer("gate") < layer("context")
    assert layer("gate+host.query") == layer("query+gate")
