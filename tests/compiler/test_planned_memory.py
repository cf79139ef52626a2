"""The compiler's plan of memory, for which it is stopped before it emits code."""

import multiprocessing
from concurrent.futures import ProcessPoolExecutor

import pytest

from asap.compiler.programs.flags import compiler_flags
from asap.compiler.programs.request import make_request
from asap.hardware import resolve_hardware
from asap.models import Workload, find_architecture
from asap.plans import Plan
from compiled_tables.hbm import configure, plan_memory

pytestmark = [pytest.mark.compiles, pytest.mark.slow]


def test_keys_and_values_that_the_tensor_axis_does_not_divide_bring_no_batch_together() -> None:
    """With 8 KV heads on 16 x 16 devices, the backward pass once gathered the batch: 19.8 GiB, of a v5e's 15.75."""
    hardware, plan = resolve_hardware("v5e-16x16").slice, Plan.parse("data=16 model=16 remat=full")
    workload = Workload(global_batch=256, sequence_length=8192)
    flags = compiler_flags("v5e", {}, plan)
    request = make_request(hardware, plan, find_architecture("llama3-8b"), workload, flags=flags, effort="least")
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(1, mp_context=context, initializer=configure, initargs=(flags,)) as pool:
        planned = pool.submit(plan_memory, request).result()
    assert planned["argument_bytes"] < planned["needed_bytes"] < 8 * 2**30
