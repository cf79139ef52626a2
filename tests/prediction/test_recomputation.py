"""What recomputation costs where XLA compiles the step: it computes only what is read, and stacks what is kept."""

import itertools

import numpy as np
import pytest

from asap.hardware.names import resolve_hardware
from asap.models import Architecture, Workload, find_architecture
from asap.plans import Plan
from asap.plans.remat import read_policy
from asap.prediction.from_architecture import predict
from asap.prediction.prediction import Prediction
from asap.prediction.step_model.encoding import model_inputs, step_inputs
from asap.prediction.step_model.groups import Groups
from asap.prediction.step_model.memory import memory
from asap.prediction.step_model.remat_policies import remat_shares, shares_of_modules
from asap.prediction.step_model.step import predict_step
from asap.prediction.uncertainty.calibration import load_calibration
from asap.study.study import study_of
from optimization.decoders import compiled
from optimization.decoders import decoder as decoder_of
from tests.cases import cases


def predicted(architecture: Architecture, workload: Workload, remat: str) -> Prediction:
    plan = Plan.parse(f"data=16 microbatches=4 remat={remat}")
    (found,) = predict([plan], architecture, workload, resolve_hardware("v5e-16").slice)
    return found


def seconds(found: Prediction, name: str) -> float:
    return next(part.busy_s for part in found.parts if part.name == name)


def on_xla(workload: Workload, **settings: object) -> Workload:
    return workload.model_copy(update={"framework": "MaxText", "zero_stage": None, **settings})


def test_a_loop_over_layers_copies_what_they_keep(decoder, workload):
    kept, again = (seconds(predicted(decoder, on_xla(workload), remat), "hbm") for remat in ("none", "full"))
    looped, unrolled = (
        seconds(predicted(decoder, on_xla(workload, scan_layers=scans), "none"), "hbm") for scans in (True, False)
    )
    assert kept == looped > 1.2 * unrolled
    assert kept > again > unrolled


def test_xla_does_not_compute_the_last_product_of_an_mlp_again(decoder, workload):
    shares = {
        name: seconds(predicted(decoder, work, "full"), "compute")
        / seconds(predicted(decoder, work, "none"), "compute")
        for name, work in (("xla", on_xla(workload)), ("torch", workload))
    }
    assert shares["torch"] == pytest.approx(4 / 3, abs=0.04)
    assert shares["xla"] == pytest.approx(1 + 0.76 / 3, abs=0.04)


@pytest.mark.parametrize("name", ["dense", "moe"])
def test_it_costs_about_what_compiled_programs_say(name: str):
    experiment, outcomes = decoder_of(name), compiled(name)
    study = study_of(experiment)
    assert study.slice is not None
    pairs = [
        (again, kept)
        for again, kept in ((each, each.replace("remat=full", "remat=none")) for each in outcomes)
        if again != kept and kept in outcomes and outcomes[kept].step_time_s and outcomes[again].step_time_s
    ]
    plans = [Plan.parse(text) for pair in pairs for text in pair]
    steps = [found.step_time for found in predict(plans, experiment.model, experiment.workload, study.slice)]
    modelled = np.array([step.value for step in steps if step]).reshape(-1, 2)
    timed = np.array([[outcomes[text].step_time_s for text in pair] for pair in pairs], dtype=float)
    ratio = np.median(modelled[:, 0] / modelled[:, 1]) / np.median(timed[:, 0] / timed[:, 1])
    assert len(pairs) > 20
    assert ratio == pytest.approx(1.0, abs=0.07)


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
    model = model_inputs(deepseek)
    dense, experts, all_of_it = (shares_of_modules(m, model) for m in (("mlp",), ("moe",), ("mlp", "moe")))
    assert float(dense.recompute_mlp + experts.recompute_mlp) == pytest.approx(float(all_of_it.recompute_mlp))
    assert float(all_of_it.recompute_mlp) == pytest.approx(1)
    assert float(dense.recompute_mlp) == pytest.approx(3 * 18432 / (3 * 18432 + 58 * 9 * 2048))
    shared = shares_of_modules(("shared_experts",), model)
    assert float(shared.recompute_mlp) == pytest.approx(float(experts.recompute_mlp) / 9)
    assert 0 < float(shares_of_modules(("layernorm", "moe_act"), model).recompute_elementwise) < 1
    assert shares_of_modules(("mla_up_proj",), model).freed_qkv == 1


@cases("policy, again")
def test_the_last_product_of_experts_is_computed_again_unless_a_policy_keeps_it(policy, again, mixture, decoder):
    found = [remat_shares(read_policy(policy), model_inputs(one), xla=True).recompute_mlp for one in (mixture, decoder)]
    assert [3 * float(share) for share in found] == pytest.approx(again)
