import pytest
from xspaces import TRAINING, Op, plane, serialised, tpu_profile

from asap.profiles import read_profile
from asap.profiles.collectives import is_host_copy, is_input
from asap.profiles.totals import totals_of
from asap.profiles.xplane.planes import read_planes

HOST, DEVICE = "f32[8]{0:T(256)S(5)}", "f32[8]{0:T(256)}"


@pytest.mark.parametrize(
    ("category", "expression"),
    [
        ("copy-done", f"%c = {DEVICE} copy-done(({DEVICE}, {HOST}, u32[]{{:S(2)}}) %copy-start)"),
        ("copy-start", f"%c = ({HOST}, {DEVICE}, u32[]{{:S(2)}}) copy-start({DEVICE} %a)"),
        ("data formatting", f"%c = {HOST} copy({DEVICE} %a)"),
        ("async-done", f"%d = {DEVICE} async-done((({HOST}), {DEVICE}, s32[]) %dynamic-slice-start)"),
        ("dynamic-update-slice", f"%d = {HOST} dynamic-update-slice({HOST} %a, {DEVICE} %b, s32[] %i)"),
        ("custom-call", f'%m = {HOST} custom-call({DEVICE} %a), custom_call_target="MoveToHost"'),
        ("host send-done", ""),
        ("host recv", ""),
    ],
)
def test_copies_with_host_memory(category, expression):
    assert is_host_copy(category, expression)


@pytest.mark.parametrize(
    ("category", "expression"),
    [
        ("copy-done", f"%c = {DEVICE} copy-done(({DEVICE}, f32[8]{{0:T(256)S(1)}}, u32[]{{:S(2)}}) %copy-start)"),
        ("data formatting", f"%c = {DEVICE} copy({DEVICE} %a)"),
        ("while", f"%w = ({DEVICE}, {HOST}) while(({DEVICE}, {HOST}) %t), condition=%c, body=%b"),
        ("loop fusion", f"%f = {DEVICE} fusion({DEVICE} %a), kind=kLoop"),
        ("send", f"%s = ({DEVICE}, u32[]) send({DEVICE} %a, token[] %t)"),
        ("infeed", ""),
    ],
)
def test_what_is_no_copy_with_host_memory(category, expression):
    assert not is_host_copy(category, expression)


def test_input_is_not_a_copy():
    assert is_input("infeed")
    assert is_input("sparsecorev0 infeed wait")
    assert not is_input("host send")


def test_a_copy_with_the_host_counts_against_the_link_and_not_against_hbm(write):
    copy = Op("copy-done.1", "copy-done", 500, 0, 2**24, f"{DEVICE} copy-done(({DEVICE}, {HOST}, u32[]) %copy-start.1)")
    operation = read_profile(write(tpu_profile([copy, TRAINING[0]]))).operations[0]
    assert (operation.name, operation.host_copy, operation.bound) == ("copy-done.1", True, "host")
    assert operation.memory_bandwidth == pytest.approx(2**24 / 500e-6)
    assert operation.memory_utilisation is None
    assert operation.roofline_efficiency is None


def test_on_a_gpu_only_the_part_counts_beside_which_no_kernel_ran(write):
    gpu = plane("/device:GPU:0")
    kernels = [gpu.event("gemm", start, 100) for start in (0, 200)]
    gpu.line(1, "Stream #1(Compute)", kernels)
    gpu.line(2, "Stream #2(MemcpyH2D)", [gpu.event("MemcpyH2D", 50, 100), gpu.event("MemcpyH2D", 210, 20)])
    gpu.line(3, "Stream #3(MemcpyD2H)", [gpu.event("MemcpyD2H", 300, 30)])
    copies = totals_of(read_planes(write(serialised([gpu])))).copies
    assert {name: (copied.seconds, copied.occurrences) for name, copied in copies.items()} == {
        "MemcpyH2D": (pytest.approx(50e-6), 2),
        "MemcpyD2H": (pytest.approx(30e-6), 1),
    }
