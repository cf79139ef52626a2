"""The graph against runs of which everything is known."""

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from made_runs import BACKWARD, COMPUTE, HOST, Rank, Run, simulate, write

from asap.traces.analysis.breakdown import breakdown, rank_times
from asap.traces.analysis.critical_path import critical_path
from asap.traces.analysis.groups import stragglers
from asap.traces.analysis.iterations import step_time
from asap.traces.analysis.quality import unexplained
from asap.traces.graph.build import build_graph
from asap.traces.graph.graph import Cause
from asap.traces.recording import load_trace
from asap.traces.what_if.apply import apply
from asap.traces.what_if.change import parse_change

US = 1e-6


@pytest.fixture
def load(tmp_path):
    def load_run(run, clocks=()):
        return load_trace([write(tmp_path / f"{abs(hash((run, clocks)))}", simulate(run, clocks))])

    return load_run


@pytest.mark.parametrize("backward_thread", [False, True])
@pytest.mark.parametrize("overlaps", [False, True])
@pytest.mark.parametrize("host", [10, 600])
def test_a_run_replays_as_it_was(load, backward_thread, overlaps, host):
    graph = build_graph(load(Run(host=host, overlaps=overlaps, backward_thread=backward_thread, slow=(1.0, 1.4))))
    assert graph.replayed == pytest.approx(graph.measured, abs=10_000)
    assert max(unexplained(graph)) < 0.02


@settings(max_examples=25, deadline=None)
@given(
    st.builds(
        Run, layers=st.integers(1, 6), kernel=st.integers(20, 900), host=st.integers(1, 500),
        transfer=st.integers(20, 900), slow=st.lists(st.floats(0.5, 2.0), min_size=1, max_size=4).map(tuple),
        overlaps=st.booleans(),
    )
)  # fmt: skip
def test_any_run_replays_as_it_was(tmp_path_factory, run):
    graph = build_graph(load_trace([write(tmp_path_factory.mktemp("run"), simulate(run))]))
    found = step_time(graph)
    assert found.replayed_s == pytest.approx(found.measured_s, rel=0.02, abs=10 * US)


CHANGES = [
    ("scale:matmul=0.5", Run(kernel=600), Run(kernel=300)), ("remove:dataloader", Run(loading=2000), Run(loading=0)),
    ("scale:all-reduce=3", Run(), Run(transfer=600)), ("scale:all-reduce=0.5", Run(transfer=800), Run(transfer=400)),
    ("overlap:all-reduce", Run(overlaps=False), Run(overlaps=True)),
    ("scale:matmul=4", Run(host=200, kernel=50), Run(host=200, kernel=200)),
]  # fmt: skip


@pytest.mark.parametrize(("change", "traced", "truth"), CHANGES, ids=[change for change, *_ in CHANGES])
def test_a_change_comes_true(load, change, traced, truth):
    expected = step_time(build_graph(load(truth))).measured_s
    graph = build_graph(load(traced))
    assert step_time(apply(graph, [parse_change(change)]).graph).replayed_s == pytest.approx(expected, rel=0.03)
    assert abs(step_time(graph).measured_s / expected - 1) > 0.05


UNRECORDED = Run(overlaps=False, waits_recorded=False)
ABLATIONS = [
    (Cause.BEGIN, "scale:matmul=0.5", Run(steps=1, late=2000), Run(steps=1, late=2000, kernel=150)),
    (Cause.HOST, "scale:matmul=0.5", Run(host=200, kernel=300), Run(host=200, kernel=150)),
    (Cause.LAUNCH, "scale:matmul=0.5", Run(host=200, kernel=300), Run(host=200, kernel=150)),
    (Cause.DURATION, "scale:matmul=2", Run(kernel=300), Run(kernel=600)),
    (Cause.STREAM, "scale:matmul=2", Run(kernel=300), Run(kernel=600)),
    (Cause.WAIT, "scale:all-reduce=3", Run(slow=(1, 3)), Run(slow=(1, 3), transfer=600)),
    (Cause.BLOCKED, "scale:matmul=2", Run(kernel=300), Run(kernel=600)),
    (Cause.COLLECTIVE, "scale:all-reduce=3", Run(slow=(1, 3)), Run(slow=(1, 3), transfer=600)),
    (Cause.INFERRED, "scale:all-reduce=3", UNRECORDED, replace(UNRECORDED, transfer=600)),
]


@pytest.mark.parametrize(("cause", "change", "traced", "truth"), ABLATIONS, ids=[row[0].name for row in ABLATIONS])
def test_each_cause_is_needed(load, cause, change, traced, truth):
    """Without its class of edges the same prediction is wrong by a tenth or more."""
    expected = step_time(build_graph(load(truth))).measured_s

    def error(graph):
        return abs(step_time(apply(graph, [parse_change(change)]).graph).replayed_s / expected - 1)

    trace = load(traced)
    assert error(build_graph(trace)) < 0.03
    assert error(build_graph(trace, without=[cause])) > 0.1


def test_every_cause_has_an_ablation():
    assert {*Cause} - {cause for cause, *_ in ABLATIONS} == {Cause.UNSEEN}  # of one rank: test_process_groups


def test_waiting_is_told_from_transfer(load):
    run = Run(layers=2, steps=1, slow=(1.0, 3.0), overlaps=False)
    graph = build_graph(load(run))
    fast, slow = (
        breakdown(rank, times) for rank, times in zip(graph.trace.ranks, rank_times(graph, graph.replayed), strict=True)
    )
    assert fast.waiting_s == pytest.approx(2 * 2 * run.kernel * US, rel=0.05)
    assert slow.waiting_s == pytest.approx(0, abs=10 * US)
    for found in (fast, slow):
        assert found.exposed_communication_s - found.waiting_s == pytest.approx(2 * run.transfer * US, rel=0.05)
    assert [found.rank for found in stragglers(graph, graph.measured)] == [1]


def test_clocks_are_aligned_on_the_ends_of_collectives(load):
    together, apart = (build_graph(load(Run(slow=(1.0, 1.5)), clocks)) for clocks in ((), (0, 7_000_000)))
    assert apart.trace.clock_spread_s == pytest.approx(0, abs=US)
    assert step_time(apart) == pytest.approx(step_time(together), rel=1e-3)


def test_the_critical_path_adds_up_to_the_run(load):
    graph = build_graph(load(Run(kernel=900)))
    path = critical_path(graph)
    assert sum(part.time_s for part in path) == pytest.approx(graph.replayed.max() * 1e-9)
    assert path[0].name == "matmul: ampere_sgemm_128x64_nn"
    assert sum(part.share for part in path) == pytest.approx(1)


def test_a_copy_that_waits_for_another_stream_does_not_show_how_long_copies_take_to_start(read):
    """In a served decoder one copy started 7.8 ms after its launch, and every other one was thought to."""
    started = (("gpu_memcpy", 33, 1000, 2025, 2), ("kernel", 7, 1010, 1019, 500), ("gpu_memcpy", 7, 1020, 1520, 2),
               ("kernel", 7, 1030, 1523, 500))  # fmt: skip
    rank = Rank(1.0)
    for number, (category, stream, launched, start, length) in enumerate(started, 1):
        rank.add("cuda_runtime", "launch", 1, launched, 2, correlation=number)
        rank.add(category, f"op{number}", stream, start, length, correlation=number, stream=stream, device=0)
    graph = build_graph(read(rank.events))
    assert graph.replayed == pytest.approx(graph.measured, abs=10_000)


def test_there_is_one_root(load):
    graph = build_graph(load(Run(slow=(1.0, 1.2, 0.9))))
    assert set(range(len(graph.measured))) - set(graph.edges.target.tolist()) == {0}


def test_returned_memory_and_branches_of_a_graph_lie_on_the_path_of_a_run_without_marks(read):
    rank = Rank(1.0)
    rank.add("cpu_op", "autograd::engine::evaluate_function: MmBackward0", BACKWARD, 0, 50)
    for thread in (HOST, BACKWARD, HOST):
        for begin in (rank.call("hipGraphLaunch", thread), rank.now + 4999):
            rank.add("kernel", "gemm", COMPUTE, begin, 5000, stream=COMPUTE, device=0, correlation=rank.correlation)
        rank.call("hipFree", thread, 100_000)
    first, second, *_ = critical_path(build_graph(read(rank.events)))
    assert (first.name, second.name) == ("hipFree", "matmul: gemm")
