"""Kineto files that are broken, incomplete or hostile."""

import gzip
import json
import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from made_runs import Run, simulate, write

from asap.core.errors import BadInputError, InsufficientEvidenceError
from asap.traces.analysis.iterations import device_iterations, step_time
from asap.traces.graph.build import build_graph
from asap.traces.recording import load_trace
from asap.traces.summary import describe, report_replay
from tests.cases import cases


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


@cases("start, unit, times, rest, message")
def test_what_is_no_trace_is_named(read, start, unit, times, rest, message):
    with pytest.raises(BadInputError, match=message):
        read(start + unit * times + rest)


def test_a_trace_without_gpu_says_so(read, events):
    with pytest.raises(InsufficientEvidenceError, match=r"no GPU activity.* its events are cuda_runtime"):
        read({"traceEvents": [event for event in events if event["cat"] == "cuda_runtime"]})


def test_names_in_another_encoding_are_read(read):
    event = {"ph": "X", "cat": "kernel", "name": "caf@", "ts": 1, "dur": 2}
    trace = read(json.dumps({"traceEvents": [event]}).encode().replace(b"@", b"\xe9"))
    assert trace.ranks[0].names == ["caf\N{REPLACEMENT CHARACTER}"]


@pytest.mark.parametrize("change", [{"ts": 2**63}, {"ts": 1e18}, {"dur": 1e18}, {"args": {"correlation": 2**64}}])
def test_numbers_that_no_trace_has_are_refused(read, change):
    event = {"ph": "X", "cat": "kernel", "name": "gemm", "ts": 1, "dur": 2}
    with pytest.raises(BadInputError):
        read({"traceEvents": [event | change]})


def test_steps_in_which_the_device_did_nothing_last_as_marked(read):
    kernel = {"ph": "X", "cat": "kernel", "name": "gemm", "ts": 900, "dur": 2}
    mark = {"ph": "X", "cat": "user_annotation", "pid": 1, "tid": 1, "dur": 9}
    marks = [mark | {"name": f"ProfilerStep#{step}", "ts": 10 * step} for step in (1, 2)]
    assert step_time(build_graph(read({"traceEvents": [*marks, kernel]}))).measured_s == pytest.approx(9e-6)


def test_a_trace_of_another_accelerator_says_what_it_holds(read):
    event = {"ph": "X", "cat": "mtia_ccp_events", "name": "dma_request", "ts": 1, "dur": 2}
    with pytest.raises(InsufficientEvidenceError, match="its events are mtia_ccp_events"):
        read({"traceEvents": [event]})


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
