"""What operations take together, and what each would save on the roofline."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st
from jax.profiler import ProfileData
from xspaces import TRAINING, plane, serialised, tpu_profile

from asap.core.errors import ProfileError
from asap.profiles import Operation, Profile, read_profile
from asap.profiles.host_time import host_time
from asap.profiles.profile import Total
from asap.profiles.totals import Totals, totals_of
from asap.profiles.xplane.planes import read_planes
from asap.reports.profile_facts import by_recoverable, roofline_columns, roofline_row, total_rows

OPERATIONS = st.builds(
    Operation, name=st.sampled_from("abc"), category=st.sampled_from(("matmul", "attention", "other")),
    fraction=st.floats(0.001, 1.0), roofline_efficiency=st.none() | st.floats(0.0, 1.2), opaque=st.booleans(),
)  # fmt: skip


@given(st.lists(OPERATIONS, max_size=8))
def test_totals_by_category_lose_nothing_and_begin_with_the_most(operations):
    totals = Profile(source="a test", operations=tuple(operations)).categories
    assert sum(one.fraction for one in totals) == pytest.approx(sum(one.fraction for one in operations))
    assert [one.fraction for one in totals] == sorted((one.fraction for one in totals), reverse=True)


@given(st.lists(OPERATIONS, max_size=8))
def test_an_operation_saves_no_more_than_it_takes_and_the_unknown_come_last(operations):
    found = by_recoverable(operations)
    known = [one.recoverable for one in found if one.recoverable is not None]
    assert all(0 <= one.recoverable <= one.fraction for one in found if one.recoverable is not None)
    assert known == sorted(known, reverse=True)
    assert all(one.recoverable is None for one in found[len(known) :])


def test_rows_have_a_cell_for_each_column():
    slow = Operation(name="gemm", category="matmul", fraction=0.4, time_s=0.2, roofline_efficiency=0.25)
    profile = Profile(source="a test", operations=(slow,), modules=(Total(name="MLP", fraction=0.1),))
    assert dict(zip(roofline_columns("step"), roofline_row(slow), strict=True))["saves at most"] == "30.00 %"
    assert total_rows(profile.modules, profile.extent_s, 3) == [("10.00 %", "50.0 ms", "MLP")]
    assert total_rows(profile.categories, None, 3) == [("40.00 %", "", "matmul")]


def read_totals(files) -> Totals:
    totals = Totals()
    for found in map(totals_of, map(read_planes, files)):
        totals.add(found)
    return totals


def stepping(compilation: int, on_gpu: bool, steps: int = 4) -> bytes:
    """Steps of 100 µs that run a kernel of 40; the first may compile before, and on a GPU its kernel runs late."""
    host, gpu = plane("/host:CPU"), plane("/device:GPU:0")
    device, events, ran = gpu if on_gpu else host, [], []
    for n, end in enumerate(compilation + 100 * (n + 1) for n in range(steps)):
        begin = end - 100 if n else 0
        late = 50 if on_gpu and compilation and not n else 0
        events.append(host.event("train", begin, end - begin, step_num=n, _r=1))
        events.append(host.event("cuLaunchKernel", end - 60, 1, correlation_id=n + 1))
        on_cpu = {"hlo_op": "gemm", "hlo_module": "jit_step", "device_ordinal": 0, "run_id": n}
        said = {"correlation_id": n + 1, "kernel_details": "grid:1"} if on_gpu else on_cpu
        ran.append(device.event("gemm", end - 50 + late, 40, **said))
    host.line(1, "python", events)
    gpu.own.append(gpu.stat(device_vendor="Nvidia", compute_cap_major=9, core_count=1, clock_rate=1))
    device.line(2, "Stream #1(Compute)", ran)
    return serialised([host, gpu] if on_gpu else [host])


RECORDED = {
    "cpu": lambda us: stepping(us, on_gpu=False),
    "gpu": lambda us: stepping(us, on_gpu=True),
    "tpu": lambda us: tpu_profile(TRAINING[:1], steps=4, compilation_us=us),
}


@pytest.mark.parametrize("device", RECORDED)
def test_the_start_up_of_a_job_is_in_no_figure(write, device):
    usual, started = (read_profile(write(RECORDED[device](us), host=f"{us}")) for us in (0, 5_000))
    assert any("from step 2 of 4" in warning for warning in started.warnings)
    assert not any("start-up" in warning for warning in usual.warnings)
    (before,), (after,) = usual.operations, started.operations
    assert (usual.kpis.steps, started.kpis.steps) == (4, 3)
    assert started.kpis.step_time_s == pytest.approx(usual.kpis.step_time_s)
    assert (after.occurrences, after.time_s) == pytest.approx((before.occurrences, before.time_s))


def test_operations_fill_a_step_where_the_first_and_the_last_of_many_are_left_out(write):
    profile = read_profile(write(stepping(0, on_gpu=True, steps=8)))
    (gemm,) = profile.operations
    assert profile.kpis.steps == 6
    assert (gemm.fraction, gemm.occurrences) == pytest.approx((0.4, 1), rel=0.1)


NAMES = ("openxla_xprof__tpu_inference_2", "openxla_xprof__gpu_multi_worker", "AMD-AGI_TraceLens__mi300_gemm")


def test_names_that_are_not_utf8_are_read_and_what_is_no_xspace_is_refused(write):
    name = b"\x12\x03a\xff\xfe"
    totals = read_totals([write(b"\x0a" + bytes([len(name)]) + name)])
    assert (totals.devices, totals.recorded_hosts) == (0, 0)
    with pytest.raises(ProfileError, match="damaged or cut off"):
        read_totals([write(b"\x0b\x00")])


@pytest.mark.parametrize("name", NAMES)
def test_it_agrees_with_the_reader_of_jax(shared, name):
    totals = read_totals([file := shared(name)])
    planes = [p for p in ProfileData.from_file(str(file)).planes if p.name.startswith("/device:")]
    lines = [{line.name: [*line.events] for line in p.lines} for p in planes]
    runs = [event for plane_lines in lines for event in plane_lines.get("XLA Modules", [])]
    assert totals.devices == len(planes)
    assert sum(len(times) for times in totals.modules.values()) == len(runs)
    assert {event.name for event in runs} == set(totals.modules)
    assert sum(map(sum, totals.modules.values())) == pytest.approx(sum(event.duration_ns for event in runs) * 1e-9)
    works = re.compile("XLA Ops$|.*(Compute|Kernel)").match
    work = [[event for line, events in found.items() if works(line) for event in events] for found in lines]
    extents = [max(e.start_ns + e.duration_ns for e in w) - min(e.start_ns for e in w) for w in work if w]
    assert totals.active == len(extents)
    if "gpu" in name:
        assert totals.windows_s == pytest.approx(sum(extents) * 1e-9)
    assert totals.recorded_hosts


def test_runs_of_all_hosts_add_up_and_devices_that_did_nothing_are_counted_apart(write):
    idle = read_totals([write(serialised([plane("/device:TPU:0"), plane("/host:CPU")]))])
    assert (idle.devices, idle.active, idle.windows_s) == (1, 0, 0)
    totals = read_totals([write(tpu_profile(devices=2, steps=3), host=host) for host in "ab"])
    assert (totals.devices, totals.active) == (4, 4)
    assert totals.modules == {"jit_train_step(77)": [pytest.approx(900e-6)] * 12}


def test_a_gpu_waits_for_what_its_host_does_by_its_kernels_on_streams_of_rocm_too(write):
    gpu, host = plane("/device:GPU:0"), plane("/host:CPU")
    gpu.line(1, "Stream #1", [gpu.event("fusion", start, 10) for start in (0, 60)])
    calls = (("PjitFunction(step)", 0, 10), ("$checkpointer.py:9 save", 12, 46), ("PjitFunction(step)", 59, 5))
    host.line(1, "python", [host.event(*call) for call in calls])
    found = host_time(read_planes(path := write(serialised([gpu, host]))), None)
    assert ((found or {})["checkpoint"], read_totals([path]).active) == (pytest.approx(46 / 70), 1)
