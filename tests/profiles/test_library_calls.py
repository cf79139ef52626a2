import pytest
from hypothesis import given
from hypothesis import strategies as st

from asap.profiles.corrections import library_product

SIZES = st.integers(1, 512)


def call(left: str, right: str, result: str, target: str = "__cublas$gemm", more: str = "") -> str:
    operands = f"{left}{{1,0}} %a.1, {right}{{1,0}} %b.1{more}"
    return f'%c = ({result}{{1,0}}, s8[4194304]{{0}}) custom-call({operands}), custom_call_target="{target}"'


@given(SIZES, SIZES, SIZES, st.integers(1, 8), st.booleans(), st.booleans())
def test_flops_and_bytes_follow_from_the_shapes(m, n, k, batch, turn_left, turn_right):
    leading = f"{batch}," if batch > 1 else ""
    left = f"bf16[{leading}{k},{m}]" if turn_left else f"bf16[{leading}{m},{k}]"
    right = f"bf16[{leading}{n},{k}]" if turn_right else f"bf16[{leading}{k},{n}]"
    product = library_product(call(left, right, f"f32[{leading}{m},{n}]"))
    assert product is not None
    assert product.flops == 2 * batch * m * n * k
    assert product.bytes == batch * (2 * (m * k + k * n) + 4 * m * n)


def test_scales_and_biases_are_no_operands_of_the_product():
    expression = call("f8e4m3fn[16,32]", "f8e4m3fn[32,8]", "bf16[16,8]", "__cublas$lt$matmul$f8", ", f32[] %scale")
    product = library_product(expression)
    assert product is not None
    assert (product.flops, product.bytes) == (2 * 16 * 32 * 8, 16 * 32 + 32 * 8 + 2 * 16 * 8)


@pytest.mark.parametrize(
    "expression",
    [
        call("bf16[16,32]", "bf16[32,8]", "bf16[16,8]", "__cudnn$convForward"),
        call("bf16[16,32]", "bf16[31,8]", "bf16[16,8]"),
        call("bf16[4,16,32]", "bf16[32,4,8]", "bf16[4,16,8]"),
        '%c = bf16[8] custom-call(), custom_call_target="__cublas$gemm"',
        '%c = token[] custom-call(bf16[2] %a), custom_call_target="__cublas$gemm"',
        "",
    ],
)
def test_what_shapes_do_not_tell_is_not_guessed(expression):
    assert library_product(expression) is None
