"""The roofs of GPUs, and products in libraries of their vendors."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from asap.profiles.gpu.chip import model_of, peaks_of
from asap.profiles.hlo.cost import costs_of
from asap.profiles.hlo.program import CompiledProgram
from asap.profiles.surroundings import computation_of
from tests.cases import cases

NVIDIA, AMD, GIB = "Nvidia", "AMD", 2**30


def device(vendor: str, capability: tuple[int, int], cores: int, mhz: int, bandwidth: float) -> dict[str, int | str]:
    figures = {"core_count": cores, "clock_rate": mhz * 1000, "memory_bandwidth": int(bandwidth)}
    return {"device_vendor": vendor, "compute_cap_major": capability[0], "compute_cap_minor": capability[1], **figures}


@cases("figures, model, flop_rate, bandwidth")
def test_only_a_halved_bandwidth_of_a_whole_known_chip_is_replaced(figures, model, flop_rate, bandwidth):
    stats = device(*figures)
    peaks, told = peaks_of(stats)
    assert model_of(stats) == model
    assert (peaks.peak_flop_rate or 0) * 1e9 == pytest.approx(flop_rate, rel=1e-3)
    assert (peaks.peak_hbm_bw or 0) * GIB == pytest.approx(bandwidth)
    assert bool(told) == (stats["memory_bandwidth"] != pytest.approx(bandwidth))
    assert all("https://" in sentence for sentence in told)


SIZES = st.integers(1, 512)
GEMM = "__cublas$gemm"


def product(result: str, *operands: str, target: str = GEMM):
    names = [f"%o{number}" for number in range(len(operands))]
    lines = [f"{name} = {shape} parameter(0)" for name, shape in zip(names, operands, strict=True)]
    around = computation_of([*lines, f"%c = {result} custom-call({', '.join(names)}), metadata={{}}"])
    call = next(one for one in around.instructions.values() if one.name == "c")
    call.target = target
    return costs_of(call, around, CompiledProgram(b""))


@given(SIZES, SIZES, SIZES, st.integers(1, 8), st.booleans(), st.booleans())
def test_flops_and_bytes_follow_from_the_shapes(m, n, k, batch, turn_left, turn_right):
    leading = f"{batch}," if batch > 1 else ""
    left = f"bf16[{leading}{k},{m}]" if turn_left else f"bf16[{leading}{m},{k}]"
    right = f"bf16[{leading}{n},{k}]" if turn_right else f"bf16[{leading}{k},{n}]"
    found = product(f"(f32[{leading}{m},{n}], s8[4194304])", left, right)
    assert found.flops == 2 * batch * m * n * k
    assert found.bytes == batch * (2 * (m * k + k * n) + 4 * m * n)


def test_scales_and_biases_are_no_operands_of_the_product():
    operands = ("f8e4m3fn[16,32]", "f8e4m3fn[32,8]", "f32[]")
    found = product("(bf16[16,8], s8[4])", *operands, target="__cublas$lt$matmul$f8")
    assert found == (2 * 16 * 32 * 8, 16 * 32 + 32 * 8 + 2 * 16 * 8)


@cases("result, operands, target")
def test_other_calls_have_no_cost(result, operands, target):
    assert product(result, *operands, target=target) == (0, 0)
