import re

import pytest
from jax.profiler import ProfileData
from xspaces import plane, serialised, tpu_profile

from asap.core.errors import ProfileError
from asap.profiles.host_time import host_time
from asap.profiles.totals import Totals, totals_of
from asap.profiles.xplane.planes import read_planes


def read_totals(files) -> Totals:
    totals = Totals()
    for found in map(totals_of, map(read_planes, files)):
        totals.add(found)
    return totals


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


def test_a_gpu_waits_for_what_its_host_does_by_its_kernels(write):
    gpu, host = plane("/device:GPU:0"), plane("/host:CPU")
    gpu.line(1, "Stream #1(Kernel)", [gpu.event("fusion", start, 10) for start in (0, 60)])
    calls = (("PjitFunction(step)", 0, 10), ("$checkpointer.py:9 save", 12, 46), ("PjitFunction(step)", 59, 5))
    host.line(1, "python", [host.event(*call) for call in calls])
    found = host_time(read_planes(write(serialised([gpu, host]))), None)
    assert (found or {})["checkpoint"] == pytest.approx(46 / 70)
