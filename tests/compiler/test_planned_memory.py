"""The compiler's plan of memory, which it reports before it emits code."""

from typing import Any

import pytest

from asap.compiler.programs.options import compiler_flags
from asap.compiler.programs.request import make_request
from asap.hardware import resolve_hardware
from asap.models import Workload, find_architecture
from asap.plans import Plan
from compiled_tables import memory_plan

pytestmark = [pytest.mark.compiles, pytest.mark.slow]


def planned(chip: str, topology: str, model: str, plan: str, batch: int, sequence: int) -> dict[str, Any]:
    hardware, parsed = resolve_hardware(chip, topology=topology).slice, Plan.parse(plan)
    workload = Workload(global_batch=batch, sequence_length=sequence)
    flags = compiler_flags(chip, {}, parsed)
    return memory_plan(make_request(hardware, parsed, find_architecture(model), workload, flags=flags, effort="least"))


def test_keys_and_values_that_the_tensor_axis_does_not_divide_bring_no_batch_together() -> None:
    """With 8 KV heads on 16 x 16 devices, the backward pass once gathered the batch: 19.8 GiB, of a v5e's 15.75."""
    found = planned("v5e", "16x16", "llama3-8b", "data=16 model=16 remat=full", 256, 8192)
    assert found["argument_bytes"] < found["needed_bytes"] < 8 * 2**30


def test_a_head_whose_width_two_axes_divide_as_finely_as_its_vocabulary_brings_no_batch_together() -> None:
    """Each device once held the gradients of the logits of all sequences: 15.2 GiB, of a v5e's 15.75."""
    found = planned("v5e", "8x8", "qwen3-30b-a3b", "data=4 seq=2 model=8 remat=full", 64, 2048)
    assert found["argument_bytes"] < found["needed_bytes"] < 12 * 2**30
