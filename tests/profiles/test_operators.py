"""FLOPs, bytes and roofs of operators by their shapes."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from asap.hardware import load_chip
from asap.profiles.operators import OperatorCall, Roof, cost_of, is_misaligned
from tests.cases import cases

SIZES = st.integers(1, 300)
BF16 = "c10::BFloat16"


def call(name, *shapes, concrete=(), kind=BF16):
    return OperatorCall(name, shapes, (kind,) * len(shapes), concrete)


@given(SIZES, SIZES, SIZES, SIZES)
def test_products_cost_the_same_by_whatever_name(m, k, n, batch):
    product = cost_of(call("aten::mm", (m, k), (k, n)))
    assert product == cost_of(call("aten::linear", (m, k), (n, k)))
    assert product.flops == cost_of(call("aten::addmm", (n,), (m, k), (k, n))).flops == 2 * m * k * n
    assert product.bytes == 2 * (m * k + k * n + m * n)
    assert cost_of(call("aten::bmm", (batch, m, k), (batch, k, n))).flops == batch * product.flops
    pointwise = call("aten::convolution", (m, k, 1, 1), (n, k, 1, 1), (), (), (), (), (), (),
                     concrete=("", "", "", "[1, 1]", "[0, 0]", "[1, 1]", "False"))  # fmt: skip
    assert cost_of(pointwise).flops == product.flops


@given(SIZES, SIZES, st.integers(1, 40))
def test_a_transposed_convolution_costs_what_the_one_does_whose_gradient_it_is(wide, narrow, size):
    given = ("", "", "", "(2,2)", "(1,1)", "(1,1)")
    small, large, weight = (4, wide, size, size), (4, narrow, 2 * size, 2 * size), (wide, narrow, 4, 4)
    turned = cost_of(call("aten::convolution", small, weight, concrete=(*given, "True"), kind="BFloat16"))
    assert turned == pytest.approx(cost_of(call("aten::convolution", large, weight, concrete=(*given, "False"))))


@given(SIZES, st.integers(1, 64), st.integers(1, 8), SIZES, SIZES)
def test_experts_multiply_what_they_are_sent_and_read_their_weights_at_most_once(
    tokens, experts, chosen, hidden, inner
):
    weights = (experts, 2 * inner, hidden), (experts, hidden, inner)
    cost = cost_of(call("vllm::fused_moe", (tokens, hidden), *weights, (tokens, chosen), kind="Float"))
    assert cost.flops == 6 * tokens * chosen * hidden * inner
    assert cost.bytes <= 4 * (3 * experts * hidden * inner + 2 * tokens * hidden)


@given(SIZES, SIZES, SIZES)
def test_attention_is_two_products_and_half_of_them_where_it_is_causal(heads, sequence, width):
    queries = ((2, heads, sequence, width),) * 3
    whole = cost_of(call("aten::_scaled_dot_product_flash_attention", *queries, concrete=("", "", "", "0.", "False")))
    causal = cost_of(call("aten::_scaled_dot_product_flash_attention", *queries, concrete=("", "", "", "0.", "True")))
    turned = cost_of(call("flash_attn::_flash_attn_forward", *((2, sequence, heads, width),) * 3))
    assert whole.flops == turned.flops == 2 * causal.flops == 4 * 2 * heads * sequence**2 * width


@given(st.lists(SIZES, min_size=1, max_size=4))
def test_what_streams_moves_its_inputs_and_no_flops(shape):
    cost = cost_of(call("aten::add", tuple(shape), tuple(shape)))
    assert (cost.flops, cost.bytes) == (0, 3 * cost_of(call("aten::fill_", tuple(shape))).bytes)


@cases("name")
def test_shapes_that_do_not_say_are_unknown(name):
    assert not any(cost_of(call(name, *shapes)) for shapes in ((), ((),), ((3, 4), (5, 6)), ((2,), (2,), (2,))))


def test_the_roof_is_that_of_the_precision():
    chip, product = load_chip("h100"), cost_of(call("aten::mm", (8192, 8192), (8192, 8192)))
    seconds = {kind: Roof.of(product, chip, kind, "gemm").seconds for kind in ("fp8", "bf16", "fp32")}
    assert seconds["fp8"] < seconds["bf16"] < seconds["fp32"]
    assert Roof.of(product, chip, "fp32", "sm80_gemm_tf32").seconds < seconds["fp32"]
    assert Roof.of(product, chip, None, "gemm") is None
    assert Roof.of(cost_of(call("aten::add", (8192,), (8192,))), chip, None, "").bound == "hbm"


def test_dimensions_that_are_no_multiple_of_eight_are_misaligned():
    assert is_misaligned(call("aten::mm", (4096, 4096), (4096, 50257)))
    assert not is_misaligned(call("aten::mm", (4095, 4096), (4096, 50304)))
