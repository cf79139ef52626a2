"""Every table that is made here of a TPU or CPU profile, against those that XProf makes of it."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from xspaces import TRAINING, Op, plane, serialised, tpu_profile

from asap.profiles.cpu import convert_cpu, read_cpu
from asap.profiles.tpu.convert import convert_tpu
from asap.profiles.xplane.planes import read_planes
from asap.profiles.xprof.converter import Conversion, convert

ROUNDED = 0.051
"""XProf prints percentages and step times with one digit."""


def ours(*files) -> Conversion | None:
    return convert_tpu([read_planes(file) for file in files])


def assert_same(*files) -> None:
    found, theirs = ours(*files), convert(files)
    assert found is not None
    assert found.summary.device_type == theirs.summary.device_type
    for name in type(theirs.summary).model_fields.keys() - {"device_type"}:
        assert getattr(found.summary, name) == pytest.approx(getattr(theirs.summary, name), abs=ROUNDED), name
    assert found.peaks.model_dump() == pytest.approx(theirs.peaks.model_dump(), rel=1e-5)
    assert found.memory == theirs.memory
    assert found.kernels == theirs.kernels == ()
    assert len(found.steps) == len(theirs.steps)
    for table, other in ((found.operations, theirs.operations), (found.roofline, theirs.roofline)):
        assert len(table) == len(other)
        for row, expected in zip(table, other, strict=True):
            for name, value in expected.model_dump().items():
                near = pytest.approx(value, rel=1e-9) if isinstance(value, float) else value
                assert getattr(row, name) == near, (name, row)


def test_the_real_profile(shared):
    assert_same(shared("openxla_xprof__tpu_inference_2"))


@pytest.mark.parametrize("marked", [True, False])
def test_a_made_profile(write, marked):
    assert_same(write(tpu_profile(marked=marked, steps=4, devices=3)))


def test_several_hosts(write):
    assert_same(*(write(tpu_profile(), host=host) for host in "abc"))


def test_waiting_for_input(write):
    infeed = Op("infeed.1", "infeed", 300, expression="f32[8] infeed(token[] %a)")
    assert_same(write(tpu_profile([infeed, *TRAINING[:2]])))


NAMES = ("while.1", "fusion.2", "custom-call.3", "host send-done.4", "copy.5")
RUN = st.tuples(st.sampled_from(NAMES), st.integers(0, 9), st.lists(st.sampled_from(NAMES), max_size=3))


def laid_out(runs):
    """Operations one after the other, each after a pause and with others inside it: name, start, length and group."""
    spans, now = [], 0
    for name, pause, inner in runs:
        now += pause
        spans.append((name, now, 4 * len(inner) + 5, now // 25 % 4))
        spans += [(each, now + 1 + 4 * i, 3, now // 25 % 4) for i, each in enumerate(inner)]
        now += 4 * len(inner) + 5
    return spans


def core(number: int, spans, merged: bool):
    """A TPU on which operations run, some of them inside others; times in µs."""
    device = plane(f"/device:TPU:{number}")
    rates = {"peak_teraflops_per_second": 10.0, "peak_hbm_bw_gigabytes_per_second": 100.0}
    vmem = {"peak_vmem_rd_bw_gigabytes_per_second": 300.0, "peak_vmem_wr_bw_gigabytes_per_second": 200.0}
    device.own.append(device.stat(device_type_string="TPU v6 Lite", has_merged_vmem=int(merged), **rates, **vmem))
    events = []
    for name, start, length, group in spans:
        costs = {"flops": 10**6 * len(name), "model_flops": 10**6 * (len(name) % 3), "bytes_accessed": 10**4}
        access = bytes([10, 7, 8, 1, 16, 1, 24, 0x90, 0x4E, 10, 7, 8, 2, 16, 3, 24, 0x90, 0x4E])
        key = {"hlo_category": name.split(".")[0], "program_id": 7, "symbol_id": int(name[-1]) - 1}
        device.metadata(f"%{name} = f32[8] op(%a)", name, **key, **costs, memory_access_breakdown=access)
        on_device = {"device_offset_ps": 10**6 * start, "device_duration_ps": 10**6 * length} if group else {}
        events.append(device.event(f"%{name} = f32[8] op(%a)", start, length, group_id=group, **on_device))
    device.line(1, "Steps", [device.event(str(i), 25 * i, 20 + number, group_id=i) for i in range(4)])
    device.line(2, "XLA Modules", [device.event("jit_step(7)", 0, 90)])
    device.line(3, "XLA Ops", events)
    return device


@given(st.lists(RUN, min_size=1, max_size=9), st.lists(RUN, min_size=1, max_size=9), st.booleans())
@settings(max_examples=15)
def test_any_operations(tmp_path_factory, one, other, merged):
    file = tmp_path_factory.mktemp("any") / "x.xplane.pb"
    planes = [core(0, laid_out(one), merged), core(1, laid_out(other), merged), plane("/host:CPU")]
    file.write_bytes(serialised(planes))
    if ours(file) is not None:
        assert_same(file)


def test_what_is_unfamiliar_is_left_to_xprof(write):
    sparse = plane("/device:TPU:0 SparseCore 0")
    sparse.line(1, "Sparse Core Ops", [sparse.event("%a = f32[8] add(%b)", 0, 5)])
    assert ours(write(serialised([core(0, [("fusion.2", 0, 5, 1)], False), sparse]))) is None
    assert ours(write(serialised([plane("/host:CPU")]))) is None


def of_cpu(*files) -> Conversion | None:
    hosts = [read_planes(file) for file in files]
    return convert_cpu(hosts, read_cpu(hosts))


def stepping(count: int, nested: bool = False, **also: str) -> bytes:
    """A host that marks steps of growing length and dispatches a program in each; times in µs."""
    host = plane("/host:CPU")
    events = [host.event(name, 0, 1) for name in also.values()]
    for n in range(count):
        events.append(host.event("train", 1000 * n + 10, 100 + 7 * n, step_num=n, _r=1))
        events += [host.event("inner", 1000 * n + 12, 20, step_num=count, _r=1)] if nested and not n else []
        events.append(host.event("PjitFunction(f)", 1000 * n + 40, 50))
    host.line(1, "python", events)
    return serialised([host])


def assert_same_steps(file) -> None:
    found, theirs = of_cpu(file), convert([file])
    assert found is not None
    assert found.summary.device_type == theirs.summary.device_type == "CPU"
    assert [row.duration for row in found.steps] == pytest.approx([row.duration for row in theirs.steps])
    assert found.peaks.hbm_ridge_point in (None, theirs.peaks.hbm_ridge_point or None)
    assert (found.operations, found.kernels, found.memory) == (theirs.operations, theirs.kernels, theirs.memory)


@pytest.mark.parametrize("count", [0, 1, 5, 6, 9])
def test_steps_of_a_cpu(write, count):
    assert_same_steps(write(stepping(count)))


def test_real_profiles_of_cpus(shared, recorded):
    assert_same_steps(shared("jax_cpu_plain"))
    assert_same_steps(next(recorded.rglob("*.xplane.pb")))


def test_steps_of_a_cpu_that_are_unfamiliar_are_left_to_xprof(write):
    assert of_cpu(write(stepping(3, nested=True))) is None
    assert of_cpu(write(stepping(0, name="SessionRun"))) is None
    files = [write(stepping(3), host=host) for host in ("a", "b")]
    assert of_cpu(*files) is None


def test_a_line_of_many_pieces_is_read_whole(write):
    count = 20_000
    host = plane("/host:CPU")
    host.line(1, "t", [host.event("dot", n, 0.5, hlo_op="dot", device_ordinal=n % 3, run_id=n) for n in range(count)])
    (work,) = read_cpu([read_planes(write(serialised([host])))]).work
    assert work.run.tolist() == list(range(count))
    assert work.device.tolist() == [n % 3 for n in range(count)]
    assert set(work.name) == {"dot"}
