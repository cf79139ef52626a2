import pytest

from asap.stacks.reading import field_of
from asap.stacks.trainer.numerics import TRAINER, loaded_in_bf16
from tests.cases import cases


@cases("said, kernel")
def test_the_kernel_of_attention(said, kernel):
    assert field_of(TRAINER, "attention", said) == kernel


@pytest.mark.parametrize(("value", "loaded"), [("bfloat16", True), ("torch.bfloat16", True), ("float32", False)])
def test_the_type_that_weights_load_in(value, loaded):
    assert loaded_in_bf16({"torch_dtype": value}) is loaded
