import importlib.util
import itertools
from functools import cache

import pytest

from asap.compiler.programs.options import CompileLimits
from asap.compiler.programs.request import make_request
from asap.compiler.reference.segments import INPUT, offloaded
from asap.compiler.toolchain.process import run_child
from asap.hardware import resolve_hardware
from asap.models import Architecture, Workload
from asap.plans import Plan, Remat

pytestmark = pytest.mark.compiles

MODEL = Architecture(name="deep", layers=256, d_model=128, d_ff=512, heads=1, kv_heads=1, head_dim=128, vocab=512)
WIDE = Architecture(name="wide", layers=64, d_model=512, d_ff=512, heads=4, kv_heads=4, head_dim=128, vocab=512)
WORK = Workload(global_batch=4, sequence_length=256)
ACTIVATION = 256 * 256 * 128 * 2  # bytes of one of all layers of MODEL, on one device
needs_libtpu = pytest.mark.skipif(importlib.util.find_spec("libtpu") is None, reason="libtpu is not installed")


@cache
def memory(plan, lines="", model=MODEL):
    hardware = resolve_hardware("v5e-4").slice
    request = make_request(hardware, Plan.parse(plan), model, WORK, effort="least", mapping=lines)
    outcome = run_child(request, CompileLimits())
    assert outcome.memory is not None, outcome.message
    return outcome.memory


@needs_libtpu
def test_a_policy_that_keeps_more_takes_more_memory():
    policies = ("full", "save_qkv_proj", "minimal", "none")
    found = [memory(f"data=4 remat={policy}").temporaries for policy in policies]
    assert all(more - less > 0.5 * ACTIVATION for less, more in itertools.pairwise(found))


@needs_libtpu
@pytest.mark.parametrize("plan", ["data=4 remat=full offload=activations", "data=4 remat=offload"])
def test_what_is_offloaded_lies_in_host_memory(plan):
    found = memory(plan)
    assert found.host >= ACTIVATION
    assert found.hbm_peak is None


@needs_libtpu
def test_each_tensor_is_kept_as_it_is_set():
    full, some = memory("data=4 remat=full"), memory("data=4 remat=up+host.query")
    assert some.temporaries - full.temporaries > 3 * ACTIVATION
    assert (full.host, some.host) == (0, pytest.approx(ACTIVATION, rel=0.1))


@needs_libtpu
def test_a_tensor_lies_where_and_as_a_program_says():
    lines = "mesh data=4\nplace up, down on pinned_host in layers 0..31\ndtype gate bf16\nlayout query col"
    as_planned, mapped = (memory("data=4 remat=full", given, WIDE) for given in ("", lines))
    tensor = 64 * 512 * 512 * 4 // 4  # of all layers, in fp32, on one device
    assert (as_planned.host, mapped.host) == (0, pytest.approx(tensor, rel=0.01))
    saved = as_planned.arguments - mapped.arguments
    assert saved == pytest.approx(
        2 * tensor / 2 + 3 * tensor / 2, rel=0.01
    )  # half of up and down; gate and its moments


def test_activations_are_offloaded_where_the_policy_leaves_something_to_offload():
    assert offloaded(Remat.FULL, ("activations",)) == (INPUT,)
    assert offloaded(Remat.MINIMAL, ("activations", "optimizer")) == (INPUT,)
    assert offloaded(Remat.OFFLOAD, ()) == (INPUT, "query", "key", "value", "out")
    assert offloaded(Remat.FULL, ("optimizer",)) == ()
    assert offloaded(Remat.NONE, ("activations",)) == ()
