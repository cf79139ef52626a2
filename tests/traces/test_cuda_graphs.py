"""CUDA graphs: one call launches many operations, which share its correlation."""

import numpy as np
import pytest

from asap.traces.analysis.iterations import step_time
from asap.traces.analysis.quality import GOOD, unexplained
from asap.traces.graph.build import build_graph
from asap.traces.graph.graph import Cause
from asap.traces.what_if.change import parse_change
from asap.traces.what_if.predict import predict_change

KERNELS, STEPS = 600, 5


def steps_of_one_graph(kernel=20.0, branches=1):
    """Each step loads a batch and launches one graph, whose copy is over before the launch returns.

    Args:
        kernel: microseconds of each.
        branches: streams that the kernels take turns on.
    """
    events, now = [], 0.0

    def add(category, name, thread, start, length, **arguments):
        event = {"ph": "X", "cat": category, "name": name, "pid": 1, "tid": thread, "ts": start, "dur": length}
        events.append(event | {"args": arguments})

    for step in range(STEPS):
        begun, correlation = now, 2 * step + 1
        now += 500
        add("cuda_runtime", "cudaGraphLaunch", 1, now, 400, correlation=correlation)
        add("gpu_memcpy", "Memcpy DtoD", 7, now + 50, 2, stream=7, correlation=correlation)
        free = now + 50 + 3
        now += 400
        for number in range(KERNELS):
            stream = 7 + number % branches
            add("kernel", "gemm", stream, free, kernel, stream=stream, correlation=correlation)
            free += kernel + 1
        returned = max(free + 5, now + 2)
        add("cuda_runtime", "cudaStreamSynchronize", 1, now, returned - now, correlation=correlation + 1)
        now = returned
        add("user_annotation", f"ProfilerStep#{step}", 1, begun, now - begun)
    return {"traceEvents": events}


@pytest.mark.parametrize("branches", [1, 3])
def test_the_launch_of_a_graph_is_the_parent_of_all_its_operations(read, branches):
    trace = read(steps_of_one_graph(branches=branches))
    (rank,) = trace.ranks
    launched_by = {rank.names[rank.calls.name[call]] for call in rank.launches.call}
    assert launched_by == {"cudaGraphLaunch"}
    assert any(f"{STEPS} launches" in note and "not of the host" in note for note in rank.notes)
    graph = build_graph(trace)
    assert abs(step_time(graph).error) < 0.02 or max(unexplained(graph)) > GOOD


def test_a_graph_launch_waits_for_none_of_its_operations(read):
    graph = build_graph(read(steps_of_one_graph()))
    (rank,), (nodes,) = graph.trace.ranks, graph.nodes
    launches = [rank.names[name] == "cudaGraphLaunch" for name in rank.calls.name]
    blocked = graph.edges.target[graph.edges.cause == Cause.BLOCKED]
    assert np.isin(nodes.call_end[~np.array(launches)], blocked).all()
    assert not np.isin(nodes.call_end[launches], blocked).any()


def test_faster_kernels_start_before_the_launch_of_their_graph_returns(read):
    found = predict_change(build_graph(read(steps_of_one_graph())), [parse_change("scale:compute=0.5")])
    truth = step_time(build_graph(read(steps_of_one_graph(kernel=10.0)))).measured_s
    assert found.value == pytest.approx(truth, rel=0.01)


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
