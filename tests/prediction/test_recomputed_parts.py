"""Recomputation of single modules, or of a share of the layers: between keeping everything and keeping nothing."""

import itertools

import numpy as np
import pytest

from asap.models import find_architecture
from asap.plans import Plan
from asap.prediction.step_model.encoding import model_inputs, step_inputs
from asap.prediction.step_model.groups import Groups
from asap.prediction.step_model.memory import memory
from asap.prediction.step_model.remat_policies import shares_of_modules
from asap.prediction.step_model.step import predict_step
from asap.prediction.uncertainty.calibration import load_calibration

MESH = "replica=2 expert=4 model=2 stage=4 microbatches=16"


def seconds_and_bytes(policies: list[str], model, workload, hardware) -> tuple[np.ndarray, np.ndarray]:
    """Step times and activations under each policy."""
    work = workload.model_copy(update={"framework": "Megatron-Core", "attention": "flash"})
    inputs = step_inputs([Plan.parse(f"{MESH} remat={policy}") for policy in policies], model, work, hardware)
    step = predict_step(inputs, load_calibration().full.resolve_one(Groups.of(hardware, work)))
    return np.asarray(step.total), np.asarray(memory(inputs).total)


def test_more_layers_that_are_recomputed_take_more_time_and_hold_less(mixture, workload, h100):
    policies = ["none", "full.1/4", "full.1/2", "full.3/4", "full"]
    times, held = seconds_and_bytes(policies, mixture, workload, h100)
    assert all(before < after for before, after in itertools.pairwise(times))
    assert all(before > after for before, after in itertools.pairwise(held))
    assert times[2] == pytest.approx((times[0] + times[4]) / 2, rel=0.03)


def test_modules_cost_what_they_compute_and_free_what_they_write(mixture, workload, h100):
    policies = ["none", "selective.moe_act", "selective.layernorm+moe_act", "selective.layernorm+moe", "full"]
    times, held = seconds_and_bytes(policies, mixture, workload, h100)
    assert all(before < after for before, after in itertools.pairwise(times))
    assert all(before > after for before, after in itertools.pairwise(held))
    assert times[2] / times[0] < 1.05 < times[3] / times[0]


def test_a_dense_mlp_alone_frees_nothing_of_experts(decoder, mixture, workload, h100):
    times, held = seconds_and_bytes(["none", "selective.mlp"], decoder, workload, h100)
    assert (times[1] > times[0], held[1] < held[0]) == (True, True)
    times, held = seconds_and_bytes(["none", "selective.mlp"], mixture, workload, h100)
    assert (times[1], held[1]) == (times[0], held[0])


def test_attention_alone_is_selective(decoder, workload, h100):
    times, held = seconds_and_bytes(["selective", "selective.core_attn"], decoder, workload, h100)
    assert (times[0], held[0]) == (times[1], held[1])


def test_shares_of_a_layer_by_what_is_in_it():
    deepseek = find_architecture("deepseek-v3")
    assert deepseek is not None
    model = model_inputs(deepseek)
    dense, experts, all_of_it = (shares_of_modules(m, model) for m in (("mlp",), ("moe",), ("mlp", "moe")))
    assert float(dense.recompute_mlp + experts.recompute_mlp) == pytest.approx(float(all_of_it.recompute_mlp))
    assert float(all_of_it.recompute_mlp) == pytest.approx(1)
    assert float(dense.recompute_mlp) == pytest.approx(3 * 18432 / (3 * 18432 + 58 * 9 * 2048))
    shared = shares_of_modules(("shared_experts",), model)
    assert float(shared.recompute_mlp) == pytest.approx(float(experts.recompute_mlp) / 9)
    assert 0 < float(shares_of_modules(("layernorm", "moe_act"), model).recompute_elementwise) < 1
    assert shares_of_modules(("mla_up_proj",), model).freed_qkv == 1
