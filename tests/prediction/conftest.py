import pytest

from asap.hardware.names import resolve_hardware
from asap.hardware.slices import Slice
from asap.models import Architecture, Workload


@pytest.fixture
def decoder() -> Architecture:
    return Architecture(
        name="decoder", layers=32, d_model=4096, d_ff=14336, heads=32, kv_heads=8, head_dim=128, vocab=32000
    )


@pytest.fixture
def mixture() -> Architecture:
    return Architecture(
        name="mixture", layers=16, d_model=2048, heads=16, kv_heads=4, head_dim=128, vocab=32000,
        experts=16, experts_per_token=2, expert_d_ff=1024,
    )  # fmt: skip


@pytest.fixture
def workload() -> Workload:
    return Workload(
        global_batch=512, sequence_length=4096, precision="bf16", attention="flash", framework="Megatron-LM",
        zero_stage=1,
    )  # fmt: skip


@pytest.fixture
def h100() -> Slice:
    return resolve_hardware("h100-64").slice


@pytest.fixture
def v5p() -> Slice:
    return resolve_hardware("v5p", topology="4x4x4").slice
