import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from asap.hardware.names import resolve_hardware
from asap.models import Architecture, Workload
from asap.plans import Plan
from asap.prediction.step_model.encoding import step_inputs
from asap.prediction.step_model.groups import Groups
from asap.prediction.step_model.physics import step_bounds
from asap.prediction.step_model.step import predict_step
from asap.prediction.uncertainty.calibration import load_calibration

PLANS = ("replica=64", "data=64 remat=full", "replica=8 model=8 microbatches=8", "data=16 stage=4 microbatches=16")


@settings(max_examples=40)
@given(
    layers=st.sampled_from([4, 32, 128]), width=st.sampled_from([512, 4096, 16384]),
    sequence=st.sampled_from([512, 8192, 131072]), experts=st.sampled_from([0, 64]), plan=st.sampled_from(PLANS),
    machine=st.sampled_from(["h100-64", "v5p-64", "a100-64"]),
    stack=st.sampled_from(["MaxText", "Megatron-LM", "torchtitan"]),
)  # fmt: skip
def test_what_the_fitted_model_predicts_is_possible_and_what_lies_far_beyond_is_not(
    layers, width, sequence, experts, plan, machine, stack
):
    model = Architecture(
        layers=layers, d_model=width, d_ff=4 * width, heads=width // 128, kv_heads=width // 128, head_dim=128,
        vocab=32000,
    )  # fmt: skip
    if experts:
        model = model.model_copy(update={"experts": experts, "experts_per_token": 4, "expert_d_ff": width})
    work = Workload(global_batch=512, sequence_length=sequence, precision="bf16", framework=stack)
    hardware = resolve_hardware(machine).slice
    inputs = step_inputs([Plan.parse(plan)], model, work, hardware)
    constants = load_calibration().full.resolve_one(Groups.of(hardware, work))
    predicted, bounds = float(np.sum(predict_step(inputs, constants).total)), step_bounds(inputs)
    assert bounds.objection(predicted) is None
    assert bounds.objection(predicted / 1e6)
    assert "as long as" in (bounds.objection(predicted * 1e6) or "")


def test_a_step_may_be_shorter_than_its_collectives_alone_allow(decoder, workload, h100):
    slow = h100.chip.model_copy(update={"network": h100.chip.network.model_copy(update={"bandwidth": 1e8})})
    hardware = type(h100)(slow, h100.chips_per_slice, h100.topology, h100.slices)
    bounds = step_bounds(step_inputs([Plan.parse("replica=64")], decoder, workload, hardware))
    assert bounds.flops.item() < bounds.collectives.item()
    assert "one pass of its collectives" in (bounds.objection(0.9 * bounds.collectives.item()) or "")
    assert bounds.objection(bounds.collectives.item()) is None


@pytest.mark.parametrize("seconds", [1.0, 3.0])
def test_many_steps_are_bounded_as_each_is_by_itself(decoder, workload, h100, seconds):
    plans = [Plan.parse(text) for text in PLANS]
    together = [bounds.objection(seconds) for bounds in step_bounds(step_inputs(plans, decoder, workload, h100)).each()]
    alone = [step_bounds(step_inputs([plan], decoder, workload, h100)).objection(seconds) for plan in plans]
    assert together == alone
