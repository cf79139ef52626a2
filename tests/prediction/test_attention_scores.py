"""Scores that go through HBM: Megatron's fused softmax takes four heads together, or PyTorch's operations do."""

import numpy as np
import pytest

from asap.plans import Plan
from asap.prediction.step_model.encoding import step_inputs
from asap.prediction.step_model.groups import Groups
from asap.prediction.step_model.memory import memory
from asap.prediction.step_model.step import predict_step
from asap.prediction.uncertainty.calibration import load_calibration


@pytest.fixture
def of_kernel(decoder, workload, h100):
    """HBM seconds of layers, and bytes, with one sequence at a time."""

    def predict(attention: str, model: int, framework: str = "Megatron-LM") -> tuple[float, float]:
        changes = {"framework": framework, "attention": attention, "sequence_length": 2048, "global_batch": 64}
        work = workload.model_copy(update=changes)
        plan = Plan.parse(f"replica={h100.devices // model} model={model} microbatches={64 * model // h100.devices}")
        inputs = step_inputs([plan], decoder, work, h100)
        step = predict_step(inputs, load_calibration().full.resolve_one(Groups.of(h100, work)))
        return float(np.asarray(step.hbm)[0]), float(np.asarray(memory(inputs).total)[0])

    return predict


def test_heads_that_are_no_multiple_of_four_fall_back_on_pytorch(of_kernel, decoder):
    assert decoder.heads == 32
    assert [of_kernel("fused softmax", 8)[k] < of_kernel("torch", 8)[k] for k in (0, 1)] == [True, True]
    assert of_kernel("fused softmax", 16) == of_kernel("torch", 16)


def test_only_megatron_has_that_kernel(of_kernel):
    assert of_kernel("unfused", 16, "MaxText")[0] < of_kernel("torch", 16, "MaxText")[0]


def test_a_kernel_that_keeps_scores_on_the_chip_needs_no_softmax_of_its_own(of_kernel):
    assert of_kernel("flash", 16) < of_kernel("fused softmax", 16)
    assert of_kernel("TE fused", 16) == of_kernel("cudnn flash", 16)
