import pytest

from asap.hardware.names import resolve_hardware
from asap.models import Architecture, Workload, find_architecture
from asap.plans import Plan
from asap.prediction.from_architecture import predict
from asap.prediction.step_model.encoding import step_inputs
from asap.prediction.step_model.memory import memory
from tests.cases import cases

MODEL = Architecture(layers=32, d_model=4096, d_ff=14336, heads=32, kv_heads=8, head_dim=128, vocab=32000)
WORK = Workload(global_batch=512, sequence_length=4096, framework="MaxText", attention="flash")
H100 = resolve_hardware("h100-64").slice


def held(plan, model, work=WORK):
    return memory(step_inputs([Plan.parse(plan)], model, work, H100))


@cases("model, hardware, plan, batch, sequence, chunks, compiled_gib, within")
def test_blocks_of_unlike_layers_are_held_as_the_compiler_holds_them(
    model, hardware, plan, batch, sequence, chunks, compiled_gib, within
):
    work = Workload(
        global_batch=batch, sequence_length=sequence, framework="MaxText", attention="flash", precision="bf16",
        loss_chunks=chunks,
    )  # fmt: skip
    found, known = resolve_hardware(hardware).slice, find_architecture(model)
    predicted = predict(Plan.parse(f"{plan} microbatches=1"), known, work, found)[0].memory.total.value / 2**30
    assert predicted == pytest.approx(compiled_gib, rel=within)


def test_layers_that_are_alike_or_not_scanned_are_rematerialised_one_by_one():
    local = {"sliding_window": 1024, "global_layer_every": 4}
    alike, unlike = MODEL, MODEL.model_copy(update=local)
    apart = WORK.model_copy(update={"scan_layers": False})
    megatron = WORK.model_copy(update={"framework": "Megatron-Core"})
    plan = "data=64 microbatches=1 remat=full"
    assert held(plan, unlike).temporaries > 1.5 * held(plan, alike).temporaries
    for work in (apart, megatron):
        assert held(plan, unlike, work).temporaries == held(plan, alike, work).temporaries
    assert held(plan.replace("full", "none"), unlike).total == held(plan.replace("full", "none"), alike).total


@cases("policy, inputs")
def test_a_policy_by_name_keeps_the_input_of_each_layer_of_a_block(policy, inputs):
    unlike = MODEL.model_copy(update={"sliding_window": 1024, "global_layer_every": 4})
    plans = (f"data=64 microbatches=1 remat={policy}{more}" for more in ("", " offload=activations"))
    kept, beside = (held(plan, unlike).activations for plan in plans)
    assert (kept - beside) / (8 * 4096 * 4096 * 2) == pytest.approx(inputs)
