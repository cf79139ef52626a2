"""Kineto files as they come, old and new."""

import gzip
import json

import pytest

from asap.traces.graph.build import build_graph
from asap.traces.summary import report_replay
from asap.traces.trace import OperationKind

OLD = {"cuda_runtime": "Runtime", "kernel": "Kernel", "gpu_memcpy": "Memcpy", "user_annotation": "Operator"}


def columns(trace):
    (rank,) = trace.ranks
    return [
        (rank.names[n], rank.lanes[lane], s, e, c)
        for table in (rank.operations, rank.calls)
        for n, lane, s, e, c in zip(table.name, table.lane, table.start, table.end, table.correlation, strict=True)
    ]


def test_old_categories_and_spellings_read_alike(read, events):
    new = read({"traceEvents": events})
    old = [event | {"cat": OLD[event["cat"]]} for event in events if event["cat"] in OLD]
    for event in old:
        if "stream" in event["args"]:
            event["tid"] = f"stream {event['tid']}"
    assert columns(read({"traceEvents": old})) == columns(new)


def test_rocm_names_give_the_same_graph(read, events):
    hip = [event | {"name": event["name"].replace("cuda", "hip").replace("nccl", "rccl")} for event in events]
    reports = [report_replay(build_graph(read({"traceEvents": each}))) for each in (events, hip)]
    assert reports[0].ranks[0].breakdown == reports[1].ranks[0].breakdown


@pytest.mark.parametrize("device", ["xpu", "privateuse1"])
def test_launches_of_other_devices_are_launches(read, events, device):
    other = [event | {"cat": event["cat"].replace("cuda", device)} for event in events]
    (cuda,), (rank,) = (read({"traceEvents": each}).ranks for each in (events, other))
    assert len(rank.calls) == len(cuda.calls) > 0
    assert rank.notes == cuda.notes


@pytest.mark.parametrize("form", ["list", "gzip", "fields after the events", "byte order mark"])
def test_forms_of_the_file(read, events, form):
    text = json.dumps({"traceEvents": events})
    forms = {
        "list": json.dumps(events),
        "gzip": gzip.compress(text.encode()),
        "fields after the events": json.dumps(
            {"traceEvents": events, "traceName": "x", "metadata": [{"a": 1}, {"b": 2}]}
        ),
        "byte order mark": b"\xef\xbb\xbf" + text.encode(),
    }
    assert columns(read(forms[form])) == columns(read(text))


def test_nanoseconds_survive_epoch_microseconds(read, events):
    """In a double, 1712867402348256.123 microseconds are a quarter of a microsecond off."""
    text = json.dumps({"traceEvents": events}).replace('"ts": ', '"ts": 17128674023').replace('"dur": ', '"dur": 1.')
    moved = [event | {"ts": int(f"17128674023{event['ts']}")} for event in events]
    assert len({len(str(event["ts"])) for event in moved}) == 1
    fractions = text.replace(', "dur"', '.123, "dur"')
    (exact,), (whole,) = read(fractions).ranks, read(text).ranks
    assert (exact.operations.start == whole.operations.start).all()
    assert ((exact.operations.end - exact.operations.start) % 1000 != 0).any()


def test_numbers_that_are_none_are_read_over(read, events):
    text = json.dumps({"traceEvents": events}).replace('"device": 0', '"device": 0, "blocks per SM": inf, "x": NaN')
    assert len(read(text).ranks[0].operations) > 0


def test_operations_launched_before_the_recording_are_kept_and_counted(read, events):
    first = next(event for event in events if event["cat"] == "cuda_runtime")
    trace = read({"traceEvents": [event for event in events if event is not first]})
    assert any("1 GPU operations have no launch" in note for note in trace.ranks[0].notes)
    (rank,) = report_replay(build_graph(trace)).ranks
    assert all(abs(times.error) < 0.02 for times in rank.device_iterations)


def test_exact_waits_of_cuda_sync(read):
    def kernel(stream, start, length, correlation):
        arguments = {"stream": stream, "device": 0, "correlation": correlation}
        event = {"ph": "X", "cat": "kernel", "name": "k", "pid": 0, "tid": stream, "ts": start, "dur": length}
        return event | {"args": arguments}

    def call(name, start, correlation):
        event = {"ph": "X", "cat": "cuda_runtime", "name": name, "pid": 1, "tid": 1, "ts": start, "dur": 2}
        return event | {"args": {"correlation": correlation}}

    wait = {"stream": 20, "device": 0, "correlation": 3, "wait_on_stream": 7, "wait_on_cuda_event_record_corr_id": 2}
    synchronised = {"ph": "X", "cat": "cuda_sync", "name": "Stream Wait Event", "pid": 0, "tid": 20, "ts": 7, "dur": 1}
    calls = call("cudaLaunchKernel", 0, 1), call("cudaEventRecord", 3, 2), call("cudaStreamWaitEvent", 6, 3)
    ran = kernel(7, 5, 500, 1), kernel(20, 505, 50, 4), call("cudaLaunchKernel", 10, 4)
    (rank,) = read({"traceEvents": [*calls, synchronised | {"args": wait}, *ran]}).ranks
    assert rank.waits.tolist() == [[1, 0]]


def test_collectives_are_told_from_other_kernels(read, events):
    (rank,) = read({"traceEvents": events}).ranks
    names = rank.operations.name[rank.operations.kind == OperationKind.COMMUNICATION]
    assert {rank.names[name] for name in names} == {"ncclDevKernel_AllReduce_Sum_f32_RING_LL"}


def test_the_generic_kernel_of_nccl_says_in_its_arguments_what_it_does(read):
    arguments = {"stream": 20, "correlation": 1, "Collective name": "allreduce"}
    kernel = {"ph": "X", "cat": "kernel", "name": "ncclDevKernel_Generic(ncclDevComm*)", "ts": 1, "dur": 2}
    (rank,) = read({"traceEvents": [kernel | {"args": arguments}]}).ranks
    assert (rank.names[rank.operations.name[0]], rank.operations.kind[0]) == ("all-reduce", OperationKind.COMMUNICATION)
