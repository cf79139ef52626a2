"""Every table that is made here of a TPU, GPU or CPU profile, against those that XProf makes of it."""

import gzip
from collections import defaultdict
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from xspaces import TRAINING, Op, plane, serialised, tpu_profile

from asap.core.errors import ProfileError
from asap.profiles.cpu import read_cpu
from asap.profiles.hosts import made_from, read_hosts
from asap.profiles.xplane.planes import read_planes
from asap.profiles.xprof.converter import Conversion, convert

ROUNDED = 0.051
"""XProf prints percentages and step times with one digit."""


def ours(*files) -> Conversion | None:
    return made_from(read_hosts(files))


def assert_same(*files) -> None:
    found, theirs = ours(*files), convert(files)
    assert found.summary.device_type == theirs.summary.device_type
    for name in type(theirs.summary).model_fields.keys() - {"device_type"}:
        assert getattr(found.summary, name) == pytest.approx(getattr(theirs.summary, name), abs=ROUNDED), name
    assert found.peaks.model_dump() == pytest.approx(theirs.peaks.model_dump(), rel=1e-5)
    assert found.memory == theirs.memory
    assert found.kernels == theirs.kernels == ()
    assert len(found.steps) == len(theirs.steps)
    assert found.program is not None
    assert theirs.program is not None
    pairs = zip((found.program, *found.operations), (theirs.program, *theirs.operations), strict=True)
    for row, expected in pairs:
        for name, value in expected.model_dump().items():
            near = pytest.approx(value, rel=1e-9) if isinstance(value, float) else value
            assert getattr(row, name) == near, (name, row)


def test_the_real_profile(shared):
    assert_same(shared("openxla_xprof__tpu_inference_2"))


@pytest.mark.parametrize("marked", [True, False])
def test_a_made_profile_of_several_hosts(write, marked):
    assert_same(*(write(tpu_profile(marked=marked, steps=4, devices=3), host=host) for host in "abc"))


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
    found, theirs = ours(file), convert([file])
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
    assert ours(write(stepping(3, nested=True))) is None
    assert ours(write(stepping(0, name="SessionRun"))) is None


def test_a_step_of_several_hosts_is_as_long_as_on_the_slowest(write):
    files = [write(stepping(count), host=str(count)) for count in (3, 4)]
    found, theirs = ours(*files), convert(files)
    assert [row.duration for row in found.steps] == pytest.approx([row.duration for row in theirs.steps])


def test_a_line_of_many_pieces_is_read_whole(write):
    count = 20_000
    host = plane("/host:CPU")
    host.line(1, "t", [host.event("dot", n, 0.5, hlo_op="dot", device_ordinal=n % 3, run_id=n) for n in range(count)])
    (work,) = read_cpu(read_planes(write(serialised([host])))).work
    assert work.run.tolist() == list(range(count))
    assert work.device.tolist() == [n % 3 for n in range(count)]
    assert set(work.name) == {"dot"}


GPU_GRAPHS = Path(__file__).parents[1] / "data" / "profiles" / "h100_cuda_graphs.xplane.pb.gz"


@pytest.fixture
def gpu_profile(shared, tmp_path):
    def find(name: str) -> Path:
        if name != "graphs":
            return shared(f"AMD-AGI_TraceLens__mi300_{name}")
        file = tmp_path / "h100.xplane.pb"
        file.write_bytes(gzip.decompress(GPU_GRAPHS.read_bytes()))
        return file

    return find


@pytest.mark.parametrize("name", ["elementwise", "gemm", "graphs"])
def test_real_profiles_of_gpus(gpu_profile, name):
    """All but the FLOPs of elementwise operations, which XLA weighs by type and chip, and what a library computes."""
    file = gpu_profile(name)
    found, theirs = ours(file), convert([file])
    assert found.summary.device_type == theirs.summary.device_type
    assert found.peaks.peak_flop_rate == pytest.approx(theirs.peaks.peak_flop_rate, rel=1e-5)
    bandwidth = (theirs.peaks.peak_hbm_bw or 0) * (1 if name == "graphs" else 5.3e12 / 2.6624e12)
    assert found.peaks.peak_hbm_bw == pytest.approx(bandwidth, rel=1e-5)
    assert found.memory == theirs.memory
    assert [row.duration for row in found.steps] == pytest.approx([row.duration for row in theirs.steps])
    assert found.program.total_time == pytest.approx(theirs.program.total_time)
    assert time_of_kernels(found) == pytest.approx(time_of_kernels(theirs))
    rows, expected = ({(row.program_id, row.hlo_op_name): row for row in made.operations} for made in (found, theirs))
    assert rows.keys() == expected.keys()
    for key, row in rows.items():
        other = expected[key]
        assert (row.category, row.occurrences, row.source_info) == (
            other.category, other.occurrences, other.source_info,
        )  # fmt: skip
        compared = ["total_self_time", "total_self_time_percent"] + ["hbm_bw"] * (row.category != "custom-call")
        for figure in compared:
            assert getattr(row, figure) == pytest.approx(getattr(other, figure)), (figure, key)
        if "dot" in row.hlo_op_name:
            assert row.model_flop_rate == pytest.approx(other.model_flop_rate), key


def time_of_kernels(made: Conversion) -> dict[str, float]:
    times: dict[str, float] = defaultdict(float)
    for kernel in made.kernels:
        times[kernel.kernel_name] += kernel.total_duration_us
    return times


RUNS = st.lists(st.tuples(st.integers(1, 400), st.integers(0, 200)), min_size=1, max_size=3)
"""Kernels of a step: how long each runs, and the pause before it; in µs."""


@given(st.lists(RUNS, min_size=1, max_size=8), st.integers(1, 2))
@settings(max_examples=15)
def test_steps_of_a_gpu(tmp_path_factory, steps, gpus):
    """A step whose mark contains its kernels lasts as long as the mark; XProf knows the kernels alone."""
    host, devices = plane("/host:CPU"), [plane(f"/device:GPU:{number}") for number in range(gpus)]
    events, ran = [], [[] for _ in devices]
    for number, runs in enumerate(steps):
        begin = 3000 * number
        events.append(host.event("train", begin, 600, step_num=number, _r=1))
        for place, device in enumerate(devices):
            now = begin + 20
            for order, (length, pause) in enumerate(runs):
                launch = 100 * number + 10 * order + place + 1
                events.append(
                    host.event("cuLaunchKernel", begin + 5 + order, 1, correlation_id=launch, device_id=place)
                )
                now += pause
                ran[place].append(device.event("gemm", now, length, correlation_id=launch, kernel_details="grid:1"))
                now += length
    host.line(1, "python", events)
    for device, kernels in zip(devices, ran, strict=True):
        device.own.append(device.stat(device_vendor="Nvidia", compute_cap_major=9, core_count=1, clock_rate=1))
        device.line(1, "Stream #1(Compute)", kernels)
    file = tmp_path_factory.mktemp("steps") / "x.xplane.pb"
    file.write_bytes(serialised([host, *devices]))
    found, theirs = ours(file), convert([file])
    ran_ms = [0.001 * (sum(map(sum, runs)) + 20) for runs in steps]
    kept = ran_ms[1:-1] if len(steps) > 5 else ran_ms
    expected = [0.6 if ran <= 0.6 else row.duration for ran, row in zip(kept, theirs.steps, strict=True)]
    assert [row.duration for row in found.steps] == pytest.approx(expected)
    if gpus == 1:
        assert [row.compute for row in found.steps] == pytest.approx([row.compute for row in theirs.steps])


def test_a_damaged_program_is_left_to_xprof(write):
    gpu, metadata = plane("/device:GPU:0"), plane("/host:metadata")
    gpu.own.append(gpu.stat(device_vendor="Nvidia", compute_cap_major=9))
    gpu.line(1, "Stream #1(Compute)", [gpu.event("k", 0, 5, hlo_op="fusion.1", program_id=1, kernel_details="grid:1")])
    metadata.metadata("jit_f(1)", "", **{"Hlo Proto": bytes([10, 4, 26, 90, 1, 1])})
    assert ours(write(serialised([gpu, metadata]))) is None


@pytest.mark.process
def test_processes_read_the_same_of_many_hosts(write, monkeypatch):
    files = [write(tpu_profile(devices=number + 1), host=str(number)) for number in range(3)]
    alone = ours(*files)
    monkeypatch.setattr("asap.profiles.hosts._WORTH_A_PROCESS", 1)
    assert ours(*files) == alone
    write(b"hello", host="1")
    with pytest.raises(ProfileError):
        read_hosts(files)
