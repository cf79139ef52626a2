"""Kineto files as they come, old and new, whole and broken."""

import gzip
import json
import random
import tracemalloc

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from made_runs import Run, simulate, write

from asap.core.errors import BadInputError, InsufficientEvidenceError
from asap.traces.analysis.iterations import device_iterations
from asap.traces.graph.build import build_graph
from asap.traces.load import load_trace
from asap.traces.readers import json_stream
from asap.traces.summary import describe, report_replay
from asap.traces.trace import OperationKind

OLD = {"cuda_runtime": "Runtime", "kernel": "Kernel", "gpu_memcpy": "Memcpy", "user_annotation": "Operator"}


@pytest.fixture
def events():
    return simulate(Run(slow=(1.0,)))[0]


@pytest.fixture
def read(tmp_path):
    """Read one document, given as text, bytes or plain data."""

    def read_document(document, name="rank0.json"):
        text = document if isinstance(document, str | bytes) else json.dumps(document)
        file = tmp_path / name
        file.write_bytes(text if isinstance(text, bytes) else text.encode())
        return load_trace([file])

    return read_document


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


def nested(depth):
    return st.recursive(
        st.integers() | st.text(max_size=12) | st.just('}, {"ph": "X"'),
        lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=5), inner, max_size=4),
        max_leaves=depth,
    )


@settings(max_examples=60, deadline=None)
@given(
    st.lists(
        st.fixed_dictionaries({"ph": st.just("X"), "name": st.text(max_size=8), "extra": nested(12)}), max_size=40
    ),
    st.integers(16, 400),
)
def test_slices_lose_nothing(tmp_path_factory, events, size):
    file = tmp_path_factory.mktemp("slices") / "trace.json"
    file.write_text(
        json.dumps({"before": [{"a": "traceEvents"}], "traceEvents": events, "after": [{}, {}]}), encoding="utf-8"
    )
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(json_stream, "SLICE", size)
        stream = json_stream.EventStream(file, dict)
        found = [event for part, _ in stream.slices() for event in part]
    blank = {ord(c): " " for c in map(chr, range(32))}
    assert json.dumps(found) == json.dumps(events).translate(blank)
    assert stream.fields == {"before": [{"a": "traceEvents"}], "after": [{}, {}]}


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 2**32), st.booleans())
def test_a_cut_file_is_refused_in_one_line(tmp_path_factory, seed, compressed):
    text = json.dumps({"traceEvents": simulate(Run(steps=1, slow=(1.0,)))[0]}).encode()
    data = gzip.compress(text) if compressed else text
    file = tmp_path_factory.mktemp("cut") / "rank0.json"
    file.write_bytes(data[: random.Random(seed).randrange(1, len(data) - 2)])
    with pytest.raises(BadInputError) as caught:
        load_trace([file])
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("document", "message"),
    [
        ("", "no list of traceEvents"),
        ("{}", "no list of traceEvents"),
        ("\x00\x01garbage", "no list of traceEvents"),
        ('{"traceEvents": [{"ph": "X", "ts": "soon"}]}', "unknown form"),
        ('{"traceEvents": [{"ph": "X", "args": {"correlation": "x"}}]}', "unknown form"),
        ('{"traceEvents": [1, 2]}', "unknown form"),
        ('{"a":' * 2000 + '"traceEvents": []', "nested too deeply"),
        ('{"traceEvents": [{"ph": "X", "args": ' + '{"a":' * 20000 + "}", "nested too deeply|cut off"),
        ('{"traceEvents": [{"ph": "X", "args": ' + "[" * 20000 + "]", "nested too deeply|cut off"),
    ],
)
def test_what_is_no_trace_is_named(read, document, message):
    with pytest.raises(BadInputError, match=message):
        read(document)


def test_a_trace_without_gpu_says_so(read, events):
    with pytest.raises(InsufficientEvidenceError, match="no GPU activity"):
        read({"traceEvents": [event for event in events if event["cat"] == "cuda_runtime"]})


def test_two_files_of_one_rank_are_refused(tmp_path, events):
    for name in ("a.json", "b.json"):
        (tmp_path / name).write_text(json.dumps({"distributedInfo": {"rank": 3}, "traceEvents": events}))
    with pytest.raises(BadInputError, match="two files are of rank 3"):
        load_trace([tmp_path])


def test_recordings_of_different_runs_do_not_align(tmp_path):
    one, other = simulate(Run(steps=6)), simulate(Run(steps=6, host=9000))
    write(tmp_path, [one[0], other[1]])
    with pytest.raises(BadInputError, match="do not align"):
        load_trace([tmp_path])


def test_one_rank_of_many_says_what_cannot_be_known(tmp_path):
    folder = write(tmp_path, simulate(Run()))
    graph = build_graph(load_trace([folder / "rank0.json.gz"]))
    assert any("1 of 2 ranks" in note and "cannot be told" in note for note in graph.trace.notes)
    assert report_replay(graph).ranks[0].breakdown.waiting_s is None


def test_nothing_of_user_or_host_is_shown(tmp_path):
    header = {"traceName": "/home/alice/run.json", "hostname": "alice-pc", "INFO": ["pid 4711 alice"]}
    graph = build_graph(load_trace([write(tmp_path, simulate(Run()), **header)]))
    assert "alice" not in describe(graph).model_dump_json() + report_replay(graph).model_dump_json()


def test_control_characters_do_not_reach_the_report(read, events):
    evil = "\x1b[2Jevil\x07 kernel"
    marked = [event | {"name": evil} if event["name"] == "optimizer_kernel" else event for event in events]
    raw = json.dumps({"traceEvents": marked}).replace("\\u001b", "\x1b")
    for document in ({"traceEvents": marked}, raw):
        report = report_replay(build_graph(read(document))).model_dump_json()
        assert "evil" in report
        assert "\\u001b" not in report


def test_operations_launched_before_the_recording_are_kept_and_counted(read, events):
    first = next(event for event in events if event["cat"] == "cuda_runtime")
    trace = read({"traceEvents": [event for event in events if event is not first]})
    assert any("1 GPU operations have no launch" in note for note in trace.ranks[0].notes)
    (rank,) = report_replay(build_graph(trace)).ranks
    assert all(abs(times.error) < 0.02 for times in rank.device_iterations)


@pytest.mark.parametrize("apart", [11, 9], ids=["one after the other", "branches that overlap"])
def test_one_launch_of_a_whole_cuda_graph(read, apart):
    launch = {"ph": "X", "cat": "cuda_runtime", "name": "cudaGraphLaunch", "pid": 1, "tid": 1, "ts": 10, "dur": 5}
    kernels = [
        {"ph": "X", "cat": "kernel", "name": f"k{i}", "pid": 0, "tid": 7, "ts": 20 + apart * i, "dur": 10}
        | {"args": {"stream": 7, "device": 0, "correlation": 1}}
        for i in range(500)
    ]
    trace = read({"traceEvents": [launch | {"args": {"correlation": 1}}, *kernels]})
    assert any("CUDA graphs" in note for note in trace.ranks[0].notes)
    graph = build_graph(trace)
    assert graph.replayed == pytest.approx(graph.measured, abs=2_000)


def test_missing_steps_are_said_and_no_iteration_spans_them(read):
    (events, _) = simulate(Run(steps=6))
    begun, ended = (next(event for event in events if event["name"] == f"ProfilerStep#{step}")["ts"] for step in (2, 4))
    rest = [event for event in events if not begun <= event["ts"] < ended]
    whole, cut = (build_graph(read({"traceEvents": each})) for each in (events, rest))
    assert any("no step between 1 and 4" in note for note in cut.trace.notes)
    assert not any("no step" in note for note in whole.trace.notes)
    (longest,) = {round(max(times.measured_s for times in _iterations(cut)), 6)}
    assert longest < 1.5 * max(times.measured_s for times in _iterations(whole))


def _iterations(graph):
    return device_iterations(graph, graph.trace.ranks[0], graph.nodes[0])


def test_overlapping_steps_are_said(read, events):
    steps = [event for event in events if event["name"].startswith("ProfilerStep")]
    longer = [event | {"dur": event["dur"] * 1.5} if event is steps[0] else event for event in events]
    trace = read({"traceEvents": longer})
    assert any("steps 0 and 1 overlap" in note for note in trace.ranks[0].notes + trace.notes)
    report = report_replay(build_graph(trace))
    assert all(time.measured_s > 0 for rank in report.ranks for time in rank.device_iterations)


def test_a_file_of_any_size_is_read_in_slices(tmp_path, events, monkeypatch):
    monkeypatch.setattr(json_stream, "SLICE", 1 << 16)
    filler = b'{"ph":"X","cat":"python_function","name":"f","pid":1,"tid":2,"ts":5,"dur":1},'
    file = tmp_path / "long.json"
    with file.open("wb") as out:
        out.write(b'{"traceEvents":[')
        for _ in range(40):
            out.write(filler * 4_000)
        out.write(json.dumps(events).encode()[1:] + b"}")
    tracemalloc.start()
    try:
        trace = load_trace([file])
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert len(trace.ranks[0].operations) == sum(event["cat"] in ("kernel", "gpu_memcpy") for event in events)
    assert peak < file.stat().st_size / 4


def test_exact_waits_of_cuda_sync(read):
    def kernel(stream, start, length, correlation):
        arguments = {"stream": stream, "device": 0, "correlation": correlation}
        event = {"ph": "X", "cat": "kernel", "name": "k", "pid": 0, "tid": stream, "ts": start, "dur": length}
        return event | {"args": arguments}

    def call(name, start, correlation):
        event = {"ph": "X", "cat": "cuda_runtime", "name": name, "pid": 1, "tid": 1, "ts": start, "dur": 2}
        return event | {"args": {"correlation": correlation}}

    wait = {"stream": 20, "device": 0, "correlation": 3, "wait_on_stream": 7, "wait_on_cuda_event_record_corr_id": 2}
    events = [
        call("cudaLaunchKernel", 0, 1),
        kernel(7, 5, 500, 1),
        call("cudaEventRecord", 3, 2),
        call("cudaStreamWaitEvent", 6, 3),
        {
            "ph": "X",
            "cat": "cuda_sync",
            "name": "Stream Wait Event",
            "pid": 0,
            "tid": 20,
            "ts": 7,
            "dur": 1,
            "args": wait,
        },
        call("cudaLaunchKernel", 10, 4),
        kernel(20, 505, 50, 4),
    ]
    (rank,) = read({"traceEvents": events}).ranks
    assert rank.waits.tolist() == [[1, 0]]


def test_collectives_are_told_from_other_kernels(read, events):
    (rank,) = read({"traceEvents": events}).ranks
    communicates = {
        rank.names[name] for name in rank.operations.name[rank.operations.kind == OperationKind.COMMUNICATION]
    }
    assert communicates == {"ncclDevKernel_AllReduce_Sum_f32_RING_LL"}
