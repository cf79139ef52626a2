import pytest

from asap.profiles.collectives import base_name, collective_of, collective_of_kernel, opcode, result_shape


@pytest.mark.parametrize(
    ("name", "category", "expression", "kind", "waits"),
    [
        ("all-reduce.3", "all-reduce", "%all-reduce.3 = f32[8] all-reduce(%a)", "all-reduce", False),
        ("fusion.9", "all-reduce fusion", "", "all-reduce", False),
        ("fusion.9", "all-gather fusion", "", "all-gather", False),
        ("fusion.9", "all-reduce-scatter fusion", "", "reduce-scatter", False),
        (
            "fusion.3",
            "custom fusion",
            "%f = bf16[8] fusion(%a), calls=%all-reduce-scatter.3.clone.1",
            "reduce-scatter",
            False,
        ),
        ("all-gather-start.1", "all-gather-start", "", "all-gather", False),
        ("all-gather-done.1", "all-gather-done", "", "all-gather", True),
        ("reduce-scatter-done.2", "async-done", "%x = f32[8] reduce-scatter-done(%s)", "reduce-scatter", True),
        ("all-to-all.6169.remat", "async-done", "%x = f32[8] async-done(%s)", "all-to-all", True),
        ("collective-permute-done", "collective-permute-done", "", "collective-permute", True),
        ("r.1", "ragged-all-to-all", "", "all-to-all", False),
        ("send-done.4", "send-done", "", "send-recv", True),
        ("recv.4", "recv", "", "send-recv", False),
        ("async-collective-done.337", "custom fusion", "%d = f32[8] fusion(%s), calls=%computation.397", None, True),
        ("psum.3", "", "", "all-reduce", False),
        ("psum_scatter.3", "", "", "reduce-scatter", False),
    ],
)
def test_collectives_are_recognised(name, category, expression, kind, waits):
    assert collective_of(name, category, expression) == (kind, waits)


@pytest.mark.parametrize(
    ("name", "category", "expression"),
    [
        ("fusion.492", "convolution fusion", "%fusion.492 = (bf16[8]) fusion(%a), calls=%async_collective_fusion.492"),
        ("async-collective-start.1", "custom fusion", "%s = (f32[8]) fusion(%a), calls=%fused_computation.398"),
        ("copy-done.4", "copy-done", "%copy-done.4 = f32[8] copy-done((f32[8]) %a)"),
        ("call-done.1", "async-done", "%c = f32[8] async-done(%s)"),
        ("host-send.1", "host send", ""),
        ("gather.2", "gather fusion", "%gather.2 = f32[8] fusion(%a), calls=%gather.1"),
        ("psum.3", "loop fusion", "%psum.3 = f32[8] fusion(%a), calls=%fused"),
        ("reduce.1", "", ""),
    ],
)
def test_what_is_no_collective_is_left_alone(name, category, expression):
    assert collective_of(name, category, expression) == (None, False)


def test_kernels_of_nccl_and_rccl():
    assert collective_of_kernel("ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevKernelArgsStorage)") == "all-reduce"
    assert collective_of_kernel("ncclKernel_SendRecv_RING_SIMPLE_Sum_int8_t") == "send-recv"
    assert collective_of_kernel("rcclDevKernel_ReduceScatter_Sum_bf16") == "reduce-scatter"
    assert collective_of_kernel("void AllReduceLikeButNot(float*)") is None


def test_parts_of_an_instruction():
    copy = "%c.4 = (f32[5,8]{1,0:T(8,128)S(5)}, u32[]{:S(2)}) copy-start(f32[5,8]{1,0:T(8,128)} %a), cross_program=1"
    assert result_shape(copy) == "(f32[5,8]{1,0:T(8,128)S(5)}, u32[]{:S(2)})"
    assert (opcode(copy), opcode("")) == ("copy-start", "")
    assert base_name("%all-gather.5.remat") == "all-gather"
    assert result_shape("no instruction") is None
