import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from asap.hardware.names import resolve_hardware
from asap.hardware.slices import Slice
from asap.models import Architecture, Workload, count_parameters, find_architecture
from asap.plans import Plan, Remat
from asap.prediction.from_architecture import predict
from asap.prediction.prediction import FIT_CONFIDENCE
from asap.prediction.step_model.device_parameters import owned_parameters
from asap.prediction.step_model.encoding import step_inputs
from asap.prediction.step_model.memory import in_flight, memory
from asap.stacks.registry import spec
from asap.stacks.writing import to_settings
from tests.cases import cases

MODEL = Architecture(layers=32, d_model=4096, d_ff=14336, heads=32, kv_heads=8, head_dim=128, vocab=32000)
WORK = Workload(global_batch=512, sequence_length=4096, framework="MaxText", attention="flash")
H100 = resolve_hardware("h100-64").slice
DEGREES = st.sampled_from([1, 2, 4, 8])


def held(plan: str, model=MODEL, work=WORK, hardware=H100):
    return memory(step_inputs([Plan.parse(plan)], model, work, hardware))


def test_all_parameters_are_held_once_by_fully_sharded_devices():
    owned = owned_parameters(step_inputs([Plan.parse("data=64")], MODEL, WORK, H100)).total
    assert float(np.sum(owned)) * 64 == pytest.approx(count_parameters(MODEL).total, rel=0.001)


def owned(plan: str, model=MODEL, framework: str | None = None) -> float:
    work = WORK.model_copy(update={"framework": framework})
    return float(np.sum(owned_parameters(step_inputs([Plan.parse(plan)], model, work, H100)).total))


def test_experts_are_divided_by_the_expert_axis(mixture):
    experts = 16 * 16 * 3 * 2048 * 1024
    one, sixteen = owned("replica=64", mixture), owned("replica=4 expert=16", mixture)
    assert one - sixteen == pytest.approx(experts * 15 / 16)


def test_fsdp_over_slices_divides_the_parameters():
    assert owned("data=16 dcn.data=4") == pytest.approx(owned("data=64"))
    assert owned("data=16 dcn.replica=4") == pytest.approx(owned("data=16"))


def test_fsdp_over_slices_gathers_through_their_network():
    near, far = (
        predict(Plan.parse(plan), MODEL, WORK, resolve_hardware("v5p", topology=(4, 4, 4), slices=slices).slice)[0]
        for plan, slices in (("data=64", 1), ("data=64 dcn.data=2", 2))
    )
    gathered = [sum(part.busy_s for part in found.parts if part.axis == "data") for found in (near, far)]
    assert gathered[1] > gathered[0]


def test_maxtext_shards_weights_over_context_and_expert_axes_too(mixture):
    assert owned("data=16 seq=4", framework="MaxText") == pytest.approx(owned("data=64"))
    assert owned("data=16 seq=4", framework="Megatron-Core") == pytest.approx(owned("data=16"))
    whole = owned("replica=64", mixture)
    assert owned("replica=4 expert=16", mixture, "MaxText") == pytest.approx(whole / 16)


def test_zero_shards_the_optimizer_then_the_gradients():
    def state(stage):
        found = held("replica=64 remat=full", work=WORK.model_copy(update={"zero_stage": stage}))
        return float(np.sum(found.optimizer)), float(np.sum(found.gradients))

    (optimizer0, gradients0), (optimizer1, gradients1), (_, gradients2) = state(0), state(1), state(2)
    assert optimizer1 == pytest.approx(optimizer0 / 64)
    assert gradients1 == gradients0
    assert gradients2 == pytest.approx(gradients0 / 64)


@pytest.mark.parametrize("present", [1, 3])
@pytest.mark.parametrize(
    ("plan", "bytes_each"), [("data=64", 16 / 64), ("replica=64", 0), ("data=8 replica=8", 16 / 8)]
)
def test_deepspeeds_state_is_what_the_pasted_stage_shards(plan, bytes_each, present):
    """Weights and gradients of 2 bytes and a state of 12 (arXiv:1910.02054, section 3.1)."""
    current = {"zero_optimization.stage": present}
    stage = int((current | to_settings(spec("deepspeed"), Plan.parse(plan), current))["zero_optimization.stage"])
    replicated = {1: 4 + 12 / 64, 2: 2 + 14 / 64}
    part = held(plan, work=WORK.model_copy(update={"framework": "DeepSpeed", "zero_stage": present}))
    parameters = float(np.sum(owned_parameters(step_inputs([Plan.parse("replica=64")], MODEL, WORK, H100)).total))
    state = float(np.sum(part.parameters + part.gradients + part.optimizer))
    assert state / parameters == pytest.approx(bytes_each or replicated[stage])


def test_flash_attention_keeps_no_scores():
    assert np.all(held("data=64 remat=none").attention == 0)
    assert np.all(held("data=64 remat=none", work=WORK.model_copy(update={"attention": "torch"})).attention > 0)


def test_a_loss_over_gathered_logits_does_not_shrink_with_tensor_parallelism():
    gathering = WORK.model_copy(update={"framework": "AA-Scaling"})
    parallel = WORK.model_copy(update={"framework": "Megatron-LM"})

    def temporaries(degree, work):
        return float(
            np.sum(held(f"replica={64 // degree} model={degree} microbatches=8 remat=none", work=work).temporaries)
        )

    assert temporaries(8, gathering) == pytest.approx(8 * temporaries(1, gathering))
    assert temporaries(8, parallel) == pytest.approx(temporaries(1, parallel))


def test_a_loss_in_one_kernel_holds_logits_and_their_gradient_in_bf16_or_one_of_them_and_one_in_parts_a_part():
    wide = MODEL.model_copy(update={"vocab": 1_000_000})
    plan = "replica=64 microbatches=1 remat=full"
    over, beside, eager, whole, parts = (
        float(np.sum(held(plan, model=wide, work=WORK.model_copy(update=said)).temporaries))
        for said in (*({"framework": name} for name in ("llm.c", "Fast-LLM", "llm.py")), {}, {"loss_chunks": 4})
    )
    assert over == pytest.approx(2 * WORK.tokens / 64 * wide.vocab)
    assert (beside, eager) == (pytest.approx(2 * over), pytest.approx(6 * over))
    assert parts == pytest.approx(whole / 4)


def test_a_state_in_bf16_is_half_of_one_in_fp32():
    def state(precision):
        work = WORK.model_copy(update={"framework": "MaxText", "weight_precision": precision})
        found = held("data=64 microbatches=1 remat=full", work=work)
        return float(np.sum(found.parameters + found.optimizer + found.gradients))

    assert state("bf16") == pytest.approx(state("fp32") / 2)
    assert state(None) == state("fp32")


def test_the_last_stage_of_a_pipeline_holds_the_logits():
    wide = MODEL.model_copy(update={"vocab": 1_000_000})
    plan, work = "replica=16 stage=4 microbatches=32 remat=full", WORK.model_copy(update={"framework": "Megatron-Core"})
    assert np.all(held(plan, wide, work).temporaries > held(plan, MODEL, work).temporaries)
    assert np.all(held(plan, wide, work).activations < held(plan, MODEL, work).activations)


@pytest.mark.parametrize(("framework", "repeats", "kept"), [
    ("Megatron-Core", 1, [4, 1]), ("Megatron-Core", 4, [4 + 3 / 4, 4 - 3 / 4]), ("MaxText", 1, [32 + 3, 32 + 3]),
    ("MaxText", 4, [32 + 3 / 4, 32 + 3 / 4]),
])  # fmt: skip
def test_a_stage_keeps_the_microbatches_of_its_schedule(framework, repeats, kept):
    plan = Plan.parse(f"replica=16 stage=4 microbatches=32 pipeline_repeats={repeats}")
    work = WORK.model_copy(update={"framework": framework})
    found = in_flight(step_inputs([plan], MODEL, work, H100))
    assert [float(np.sum(stage)) for stage in found] == kept


def planned_gib(model, chip, topology, plan, work):
    """What the compiler of the reference step should plan."""
    found = predict(Plan.parse(plan), model, work, resolve_hardware(chip, topology=topology).slice)[0].memory
    return found.total.value / 2**30


@cases("model, chip, topology, plan, batch, sequence, gib")
def test_the_hbm_of_a_program_of_the_table_is_what_its_compiler_plans(
    model, chip, topology, plan, batch, sequence, gib
):
    """The loop of a pipeline adds up gradients as microbatches do; keys that were gathered are kept with all else."""
    work = WORK.model_copy(update={"global_batch": batch, "sequence_length": sequence})
    assert planned_gib(find_architecture(model), chip, topology, plan, work) == pytest.approx(gib, rel=0.1)


def test_policies_keep_what_they_name():
    kept = {policy: held(f"replica=64 remat={policy}").activations for policy in Remat}
    ordered = [kept[p] for p in (Remat.FULL, Remat.SAVE_OUT_PROJ, Remat.SAVE_DOT_EXCEPT_MLP, Remat.MINIMAL, Remat.NONE)]
    assert all(np.all(less < more) for less, more in itertools.pairwise(ordered))
    both = kept[Remat.SAVE_QKV_PROJ] + kept[Remat.SAVE_OUT_PROJ] - kept[Remat.FULL]
    assert both == pytest.approx(kept[Remat.SAVE_DOT_EXCEPT_MLP])


@pytest.mark.parametrize("policy", ["none", "minimal"])
def test_parallel_blocks_keep_one_norm_and_nothing_of_what_attention_writes(policy):
    at_once = MODEL.model_copy(update={"parallel_block": True})
    plan = f"replica=64 remat={policy}"
    assert held(plan, at_once).activations < held(plan).activations


def test_who_does_not_gather_again_keeps_what_was_gathered():
    sharded = WORK.model_copy(update={"sequence_parallel": True})
    plan = "replica=8 model=8 remat=none"
    again = held(plan, work=sharded.model_copy(update={"framework": "Megatron-Core"}))
    kept = held(plan, work=sharded.model_copy(update={"framework": "torchtitan", "attention": "flash + RMS"}))
    assert np.all(kept.activations > again.activations)


def test_an_allocator_reserves_temporaries_more_than_the_rest():
    modelled = held("data=64 remat=full")
    reserved = modelled.reserved(1.1, 1.5)
    assert np.all(reserved.total > 1.1 * modelled.total)
    assert (reserved.activations, reserved.temporaries) == (modelled.activations, modelled.temporaries)
    assert reserved.allocator == pytest.approx(0.1 * modelled.total + 0.55 * modelled.temporaries)


# What XLA's compiler allocates for the reference step (compiled_tables.memory_plan, full effort): programs of
# docs/verify.md, rows maxtext_readme-0034, -0036, -0040, -0008.
@cases("width, layers, heads, ff, chip, topology, plan, batch, gib")
def test_the_hbm_is_what_the_tpu_compiler_plans(width, layers, heads, ff, chip, topology, plan, batch, gib):
    model = Architecture(
        layers=layers, d_model=width, d_ff=ff, heads=heads, kv_heads=heads, head_dim=256, vocab=32768, gated_mlp=False
    )
    work = Workload(global_batch=batch, sequence_length=2048, framework="MaxText")
    assert planned_gib(model, chip, topology, plan, work) == pytest.approx(gib, rel=0.1)


# asap verify --effort least of llama3.1-8b: HBM of the reference step, or what it would need.
@cases("chip, topology, plan, batch, gib")
def test_the_hbm_of_every_policy_is_what_the_tpu_compiler_plans(chip, topology, plan, batch, gib):
    model = MODEL.model_copy(update={"vocab": 128256})
    work = Workload(global_batch=batch, sequence_length=8192, framework="MaxText")
    assert planned_gib(model, chip, topology, plan, work) == pytest.approx(gib, rel=0.16)


def test_a_tensor_takes_hbm_where_it_is_kept_on_the_device():
    tokens = 8 * 4096  # of a device
    full, key = held("data=64 remat=full"), held("data=64 remat=key")
    assert key.activations - full.activations == pytest.approx(32 * tokens * 8 * 128 * 2)
    assert held("data=64 remat=host.key+host.up").activations == pytest.approx(full.activations)
    every = held("data=64 remat=query+key+value+out+gate+up")
    assert every.activations == held("data=64 remat=minimal").activations


@settings(max_examples=30)
@given(DEGREES, st.sampled_from(["none", "minimal", "full"]), st.floats(0.3, 4.0))
def test_the_verdict_on_memory_says_no_more_than_its_odds_and_falls_in_no_bigger_hbm(degree, policy, factor):
    plan = Plan.parse(f"data={64 // degree} model={degree} remat={policy}")
    needed = predict(plan, MODEL, WORK, H100)[0].memory.total.value
    chips = [H100.chip.model_copy(update={"hbm_bytes": needed * factor * more}) for more in (1.0, 1.5)]
    found, roomier = (predict(plan, MODEL, WORK, Slice(chip, 64))[0].memory for chip in chips)
    odds = found.probability_fits
    assert roomier.fits >= found.fits
    assert found.total.low < found.total.value < found.total.high
    assert sum(part.size_bytes for part in found.parts) == pytest.approx(found.total.value)
    assert found.fits == (odds >= FIT_CONFIDENCE)
    assert found.verdict == ("fits" if found.fits else "may not fit" if odds > 1 - FIT_CONFIDENCE else "does not fit")
    assert (odds >= 0.95) == (found.total.high <= found.capacity_bytes)
