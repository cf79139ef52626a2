"""XPlane files: decoded as JAX decodes them, and made ones of which everything is known."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from asap.core.errors import AsapError, InsufficientEvidenceError, ProfileError
from asap.profiles.xplane.planes import read_planes
from asap.traces.analysis.iterations import device_iterations, step_time
from asap.traces.graph.build import build_graph
from asap.traces.readers.xplane import read_xplane
from asap.traces.recording import load_trace
from asap.traces.summary import report_replay
from tests.cases import cases

MS = 10**9
SHAPE = "f32[1024,1024]{1,0}"


def varint(number):
    low, rest = number & 0x7F, number >> 7
    return bytes([low | 0x80]) + varint(rest) if rest else bytes([low])


def message(number, *parts):
    body = b"".join(parts)
    return varint(number << 3 | 2) + varint(len(body)) + body


def integer(number, value):
    return varint(number << 3) + varint(value)


def xspace(planes, facts=None):
    """Planes as name → line → events of name, start and duration in picoseconds, and correlation; ``facts`` of each."""
    encoded = []
    for plane, lines in planes.items():
        names = sorted({event[0] for events in lines.values() for event in events})
        number = {name: i for i, name in enumerate(names, start=1)}
        parts = [message(2, plane.encode())]
        for line, events in lines.items():
            rows = [message(4, _event(number, *event)) for event in events]
            parts.append(message(3, message(2, line.encode()), integer(3, 1_000), *rows))
        for name, key in number.items():
            parts.append(message(4, integer(1, key), message(2, integer(1, key), message(2, name.encode()))))
        parts.append(message(5, integer(1, 9), message(2, integer(1, 9), message(2, b"correlation_id"))))
        parts.append(message(5, integer(1, 8), message(2, integer(1, 8), message(2, b"core_details"))))
        parts.append(message(6, integer(1, 8), message(6, facts[plane])) if facts else b"")
        encoded.append(message(1, *parts))
    return b"".join(encoded)


def _event(number, name, start, duration, correlation=None):
    stat = b"" if correlation is None else message(4, integer(1, 9), integer(3, correlation))
    return integer(1, number[name]) + integer(2, start) + integer(3, duration) + stat


@pytest.fixture
def write(tmp_path):
    def write_file(data, name="host.xplane.pb"):
        file = tmp_path / name
        file.write_bytes(data if isinstance(data, bytes) else xspace(data))
        return file

    return write_file


LARGE = st.integers(0, 2**62)
EVENT = st.tuples(st.sampled_from(["add", "mul", "π"]), LARGE, st.integers(0, 2**40), st.none() | LARGE)


@given(st.dictionaries(st.sampled_from(["a", "b", "c"]), st.lists(EVENT, max_size=12), max_size=3))
def test_events_are_decoded_as_they_were_written(tmp_path_factory, lines):
    file = tmp_path_factory.mktemp("plane") / "x.xplane.pb"
    file.write_bytes(xspace({"/device:TPU:0": lines}))
    (plane,) = read_planes(file, "/device")
    assert [line.name for line in plane.lines] == list(lines)
    for line, events in zip(plane.lines, lines.values(), strict=True):
        found = line.events(("correlation_id",))
        correlation = found.stats["correlation_id"]
        known = np.where(correlation.known, correlation.value, -1)
        rows = zip(found.metadata, found.start_ns, found.end_ns, known, strict=True)
        found = [(plane.names[key], int(start), int(end), int(correlation)) for key, start, end, correlation in rows]
        assert found == [
            (name, 1000 + at // 1000, 1000 + (at + length) // 1000, -1 if correlation is None else correlation)
            for name, at, length, correlation in events
        ]


@pytest.mark.parametrize("name", ["openxla_xprof__tpu_inference_2", "AMD-AGI_TraceLens__mi300_gemm"])
def test_real_files_are_decoded_as_jax_does(real_profile, name):
    from jax.profiler import ProfileData

    file = real_profile(name)
    theirs = {plane.name: plane for plane in ProfileData.from_file(str(file)).planes}
    planes = list(read_planes(file, "/"))
    assert planes
    for plane in planes:
        for line, other in zip(plane.lines, theirs[plane.name].lines, strict=True):
            events = list(other.events)
            assert line.name == other.name
            assert [plane.names[key] for key in line.events().metadata.tolist()] == [event.name for event in events]
            found = line.events()
            assert found.start_ns == pytest.approx([event.start_ns for event in events], abs=1)
            assert found.end_ns - found.start_ns == pytest.approx([event.duration_ns for event in events], abs=1)


@given(st.integers(1, 10_000), st.integers(0, 255))
def test_damaged_files_are_refused_or_read(tmp_path_factory, cut, byte):
    file = tmp_path_factory.mktemp("damaged") / "x.xplane.pb"
    whole = xspace({"/device:TPU:0": {"XLA Ops": [("add", 5, 7, 3)] * 40}})
    place = cut % len(whole)
    file.write_bytes(whole[:place] + bytes([byte]) + whole[place + 1 :])
    try:
        load_trace([file])
    except AsapError as refused:
        assert len(str(refused).splitlines()) == 1  # noqa: PT017


def test_a_cut_file_is_refused(write):
    with pytest.raises(ProfileError, match="damaged or cut off"):
        load_trace([write(xspace({"/device:TPU:0": {"XLA Ops": [("add", 5, 7)] * 40}})[:-9])])


def test_the_corrupt_profile_is_refused(real_profile):
    with pytest.raises(ProfileError):
        load_trace([real_profile("openxla_xprof__tpu_inference_2_CORRUPT")])


def test_a_profile_without_devices_says_so(write):
    with pytest.raises(InsufficientEvidenceError, match="no device activity"):
        load_trace([write({"/host:CPU": {"python": [("f", 0, 5)]}})])


def offloading(executions=3, wait=20, compute=30, shared=0):
    """Two copies from the host, issued at once, needed one after the other; their link carries one in ``wait`` ms."""
    operations, modules = [], []
    for run in range(executions):
        at = 100 * MS * run
        modules.append(("jit_step(1)", at, (2 * max(wait, compute) + compute + shared) * MS))
        for name in ("copy-start.1", "copy-start.2"):
            host = f"{SHAPE[:-1]}:S(5)}}"
            operations.append((f"%{name} = ({SHAPE}, {host}, u32[]) copy-start({host} %param)", at, 0))
        waits = (wait, max(wait - compute, 0) + shared)
        for name, waited in zip(("1", "2"), waits, strict=True):
            operations.append((f"%copy-done.{name} = {SHAPE} copy-done(({SHAPE}) %copy-start.{name})", at, waited * MS))
            at += waited * MS
            fusion = f"%fusion.{name} = {SHAPE} fusion({SHAPE} %copy-done.{name}), kind=kLoop"
            operations.append((fusion, at, compute * MS))
            at += compute * MS
    return {"/device:TPU:0": {"XLA Modules": modules, "XLA Ops": operations}}


@pytest.mark.parametrize(("wait", "compute"), [(20, 30), (30, 20), (40, 5)])
def test_transfers_queue_for_their_link(write, wait, compute):
    graph = build_graph(load_trace([write(offloading(wait=wait, compute=compute))]))
    (rank,) = graph.trace.ranks
    found = step_time(graph)
    expected = max(2 * wait, wait + compute) + compute
    assert found.measured_s == pytest.approx(expected * 1e-3, rel=1e-3)
    assert found.replayed_s == pytest.approx(found.measured_s, rel=1e-3)
    assert "host to device" in rank.lanes


def test_a_longer_wait_than_the_link_explains_is_not_copied(write):
    graph = build_graph(load_trace([write(offloading(wait=30, compute=20, shared=15))]))
    found = step_time(graph)
    assert found.measured_s - found.replayed_s == pytest.approx(15e-3, rel=0.05)


def test_a_loop_is_its_body(write):
    body = [("%add.1 = f32[8]{0} add(f32[8]{0} %a)", 10 * MS * i, 10 * MS) for i in range(5)]
    loop = ("%while = (f32[8]{0}) while((f32[8]{0}) %tuple)", 0, 50 * MS)
    lines = {"XLA Modules": [("jit_step(1)", 0, 50 * MS)], "XLA Ops": [loop, *body]}
    graph = build_graph(load_trace([write({"/device:TPU:0": lines})]))
    (rank,) = graph.trace.ranks
    assert len(rank.operations) == 5
    assert device_iterations(graph, rank, graph.nodes[0])[0].replayed_s == pytest.approx(0.05)


def test_cores_meet_those_of_their_replica_group_and_are_numbered_as_in_the_job(write):
    """Groups name places in the order of the program, which another plane says: core 6 is late, and 7 alone waits."""
    order = message(15, integer(1, 1), integer(2, 4), *(message(3, message(1, varint(core))) for core in (4, 6, 5, 7)))
    program = message(2, integer(1, 1), message(5, integer(1, 2), message(6, message(1, message(1, b"step"), order))))
    named = message(5, integer(1, 2), message(2, integer(1, 2), message(2, b"Hlo Proto")))
    described = message(1, message(2, b"/host:metadata"), message(4, integer(1, 1), program), named)
    reduces = f"%all-reduce.1 = {SHAPE} all-reduce({SHAPE} %add.1), replica_groups=[2,2]<=[2,2]T(1,0), x"
    planes, facts = {}, {}
    for core, (own, ends) in enumerate([(10, 15), (10, 15), (20, 25), (10, 25)]):
        operations = [("%add.1 = f32[8]{0} add(f32[8]{0} %a)", 0, own * MS), (reduces, own * MS, (ends - own) * MS)]
        plane = f"/device:TPU:{core}"
        planes[plane] = {"XLA Modules": [("jit_step(1)", 0, 25 * MS)], "XLA Ops": operations}
        facts[plane] = integer(2, core) + integer(6, 4 + core)
    graph = build_graph(load_trace([write(xspace(planes, facts) + described)]))
    (found,) = report_replay(graph).groups
    assert [each.group.ranks for each in graph.trace.matched] == [(4, 5), (6, 7)]
    assert (found.groups, found.size, found.awaited, found.transfer_s) == (2, 2, 6, pytest.approx(5e-3, rel=1e-3))
    assert found.bus_bandwidth == pytest.approx(4 * 1024**2 / 5e-3, rel=1e-3)


def test_launches_of_a_gpu_are_found_by_correlation(write):
    host = {"python": [("hipModuleLaunchKernel", 0, MS, 1), ("hipModuleLaunchKernel", 2 * MS, MS, 2), ("other", 0, MS)]}
    begin = MS + 20_000
    device = {"Stream #16(Kernel)": [("gemm.kd", begin, 5 * MS, 1), ("add.kd", begin + 5 * MS, MS, 2)]}
    graph = build_graph(load_trace([write({"/host:CPU": host, "/device:GPU:0": device, "/device:GPU:1": {}})]))
    (rank,) = graph.trace.ranks
    assert (len(rank.calls), len(rank.operations), rank.lanes[0]) == (2, 2, "stream 16")
    assert graph.replayed == pytest.approx(graph.measured, abs=2_000)


def stepping(marks, runs):
    """A host that marks steps, on whose only device programs run; times in ps."""
    stats = {"step_num": 1, "hlo_op": 2, "device_ordinal": 3, "run_id": 4}

    def said(**values):
        return b"".join(message(4, integer(1, stats[name]), integer(4, value)) for name, value in values.items())

    def event(start, length, **values):
        return message(4, integer(1, 1), integer(2, start), integer(3, length), said(**values))

    marked = [event(start, length, step_num=number) for number, start, length in marks]
    ran = [event(start, 5_000, hlo_op=9, device_ordinal=0, run_id=n) for n, start in enumerate(runs)]
    lines = [message(3, message(2, name), *rows) for name, rows in ((b"python", marked), (b"pool", ran))]
    named = [
        message(5, integer(1, key), message(2, integer(1, key), message(2, name.encode())))
        for name, key in (*stats.items(), ("dot.1", 9))
    ]
    metadata = message(4, integer(1, 1), message(2, integer(1, 1), message(2, b"event")))
    return message(1, message(2, b"/host:CPU"), *lines, metadata, *named)


@cases("marks, runs, expected")
def test_steps_of_a_cpu_follow_the_marks_that_its_device_keeps_up_with(write, marks, runs, expected):
    (rank,) = read_xplane(write(stepping(marks, runs)))
    assert [step.label for step in rank.steps] == expected


def test_eight_annotated_steps_are_eight(real_profile):
    (rank,) = read_xplane(real_profile("jax_cpu_plain"))
    assert [step.label for step in rank.steps] == list("23456789")
