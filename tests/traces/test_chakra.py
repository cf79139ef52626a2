"""Chakra execution traces: what is written reads back as the same run."""

import pytest
from google.protobuf.proto import serialize_length_prefixed
from made_runs import Run, write
from made_runs import simulate as simple
from megatron import Job, simulate

from asap.core.errors import BadInputError, InsufficientEvidenceError
from asap.traces.chakra import _messages, write_chakra
from asap.traces.graph.build import build_graph
from asap.traces.graph.graph import longest_path
from asap.traces.recording import load_trace
from asap.traces.what_if.apply import apply
from asap.traces.what_if.change import parse_change

RUNS = {
    "pipeline": simulate(Job(tp=2, dp=1, pp=2, microbatches=4, steps=1))[0],
    "overlapping": simple(Run(layers=6, steps=1, loading=0)),
    "host-bound": simple(Run(host=600, kernel=100, steps=1, loading=0)),
}


def length(graph):
    """Until the last operation of a device has ended."""
    time = longest_path(len(graph.measured), graph.edges)
    return max(float(time[nodes.operation_end].max()) for nodes in graph.nodes) * 1e-9


@pytest.mark.parametrize("run", RUNS)
def test_what_is_written_replays_as_the_run_itself(tmp_path, run):
    graph = build_graph(load_trace([write(tmp_path / "run", RUNS[run])]))
    assert len(write_chakra(graph, tmp_path / "chakra")) == len(graph.trace.ranks)
    back = build_graph(load_trace([tmp_path / "chakra"]))
    assert len(back.trace.matched) == len(graph.trace.matched)
    assert "marks no steps" in back.trace.notes[0]
    assert sum(each.collectives for each in back.trace.matched) == sum(each.collectives for each in graph.trace.matched)
    for change in ("scale:compute=0.5", "scale:communication=2"):
        one, other = (length(apply(each, [parse_change(change)]).graph) - length(each) for each in (graph, back))
        assert other == pytest.approx(one, abs=0.03 * length(graph))


def file_of(path, *nodes):
    messages = _messages()
    with path.open("wb") as stream:
        serialize_length_prefixed(messages["Metadata"](version="0.0.4"), stream)
        for node in nodes:
            serialize_length_prefixed(messages["Node"](**node), stream)
    return path


def test_what_cannot_be_read_is_refused(tmp_path):
    lengths = [{"id": number, "name": "a", "type": 4, "duration_micros": 1} for number in (0, 1)]
    with pytest.raises(BadInputError, match="no rank"):
        load_trace([file_of(tmp_path / "run.et", *lengths)])
    for name, nodes in (("no-starts", lengths), ("before", [{"id": 0, "name": "a", "type": 4}])):
        with pytest.raises(InsufficientEvidenceError, match="when operations ran and how long"):
            load_trace([file_of(tmp_path / f"{name}.0.et", *nodes)])
    damaged = file_of(tmp_path / "damaged.0.et", *lengths)
    damaged.write_bytes(damaged.read_bytes()[:-3])
    with pytest.raises(BadInputError, match="cannot be read"):
        load_trace([damaged])
