from statistics import fmean

import pytest
from hypothesis import given
from hypothesis import strategies as st
from jax.profiler import ProfileData
from xspaces import plane, serialised, tpu_profile

from asap.core.errors import ProfileError
from asap.profiles.skeleton import read_skeleton
from asap.profiles.wire import fields, integers, text

NAMES = ("openxla_xprof__tpu_inference_2", "openxla_xprof__gpu_multi_worker", "AMD-AGI_TraceLens__mi300_gemm")


@given(st.dictionaries(st.integers(1, 2**28), st.integers(0, 2**64 - 1), max_size=8))
def test_integers_of_any_size_are_read(values):
    message = b"".join(varint(number << 3) + varint(value) for number, value in values.items())
    assert integers(memoryview(message), *values, 2**28 + 1) == [*values.values(), 0]


@given(st.lists(st.tuples(st.integers(1, 2**20), st.binary(max_size=300)), max_size=8))
def test_strings_are_skipped_by_their_length(parts):
    message = b"".join(varint(number << 3 | 2) + varint(len(value)) + value for number, value in parts)
    assert [(number, bytes(value)) for number, value in fields(memoryview(message))] == parts  # type: ignore[arg-type]


def test_fixed_width_numbers_are_skipped_and_unknown_types_refused():
    assert text(memoryview(b"\x09" + b"\x00" * 8 + b"\x15" + b"\x00" * 4 + b"\x1a\x02ok"), 3) == "ok"
    with pytest.raises(ProfileError, match="wire type 3"):
        list(fields(memoryview(b"\x0b\x00")))


@pytest.mark.parametrize("name", NAMES)
def test_it_agrees_with_the_reader_of_jax(shared, name):
    file = shared(name)
    skeleton = read_skeleton([file])
    planes = [p for p in ProfileData.from_file(str(file)).planes if p.name.startswith("/device:")]
    lines = [{line.name: [*line.events] for line in p.lines} for p in planes]
    runs = [event for plane_lines in lines for event in plane_lines.get("XLA Modules", [])]
    assert skeleton.devices == len(planes)
    assert sum(len(times) for times in skeleton.modules.values()) == len(runs)
    assert {event.name for event in runs} == set(skeleton.modules)
    total = sum(sum(times) for times in skeleton.modules.values())
    assert total == pytest.approx(sum(event.duration_ns for event in runs) * 1e-9)
    work = [
        [
            event
            for line, events in plane_lines.items()
            if line == "XLA Ops" or "Compute" in line or "Kernel" in line
            for event in events
        ]
        for plane_lines in lines
    ]
    extents = [max(e.start_ns + e.duration_ns for e in w) - min(e.start_ns for e in w) for w in work if w]
    assert skeleton.active == len(extents)
    assert skeleton.window_s == pytest.approx(fmean(extents) * 1e-9)
    assert skeleton.has_host


def test_devices_that_did_nothing_are_counted_apart(write):
    skeleton = read_skeleton([write(serialised([plane("/device:TPU:0"), plane("/host:CPU")]))])
    assert (skeleton.devices, skeleton.active, skeleton.window_s) == (1, 0, None)


def test_runs_of_all_hosts_add_up(write):
    files = [write(tpu_profile(devices=2, steps=3), host=host) for host in "ab"]
    skeleton = read_skeleton(files)
    assert (skeleton.devices, skeleton.active) == (4, 4)
    assert skeleton.modules == {"jit_train_step(77)": [pytest.approx(900e-6)] * 12}


def varint(number: int) -> bytes:
    low, rest = number & 0x7F, number >> 7
    return bytes([low | 0x80]) + varint(rest) if rest else bytes([low])
