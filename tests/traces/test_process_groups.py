"""Replay of pipelines and of several process groups against runs of which everything is known."""

from dataclasses import replace

import pytest
from made_runs import write
from megatron import Job, seconds_of, simulate

from asap.diagnosis import diagnose
from asap.traces.analysis.breakdown import step_parts
from asap.traces.analysis.iterations import step_time
from asap.traces.analysis.quality import unexplained, verdict
from asap.traces.analysis.report import QualityVerdict
from asap.traces.graph.build import build_graph
from asap.traces.profile import profile_of
from asap.traces.recording import load_trace
from asap.traces.summary import report_replay
from asap.traces.what_if.change import parse_change
from asap.traces.what_if.predict import predict_change, slow_ranks

LAYOUTS = [(2, 2, 2), (1, 2, 4), (1, 1, 8), (2, 1, 4), (4, 2, 1), (1, 8, 1)]
"""Tensor, data and pipeline degrees."""


def job_of(layout, **settings):
    tp, dp, pp = layout
    return Job(tp=tp, dp=dp, pp=pp, microbatches=4, noise=0.01, **settings)


@pytest.fixture
def graph(tmp_path):
    def graph_of(job, number=0):
        return build_graph(load_trace([write(tmp_path / f"run{number}", simulate(job)[0])]))

    return graph_of


@pytest.mark.parametrize("layout", LAYOUTS, ids=str)
def test_several_groups_replay_and_predict_what_a_change_brings(graph, layout):
    job = job_of(layout)
    found = graph(job)
    assert step_time(found).measured_s == pytest.approx(seconds_of(job), rel=0.01)
    assert step_time(found).replayed_s == pytest.approx(step_time(found).measured_s, rel=0.015)
    assert max(unexplained(found)) < 0.02
    for changes, other in (
        (("scale:matmul=0.5", "scale:attention=0.5"), replace(job, matmul=0.5, seed=3)),
        (("scale:communication=2",), replace(job, link=2.0, seed=3)),
    ):
        predicted, truth = predict_change(found, [parse_change(change) for change in changes]), seconds_of(other)
        assert predicted.value == pytest.approx(truth, rel=0.04)
        assert predicted.low <= truth <= predicted.high


@pytest.mark.parametrize("rank", [0, 2, 5, 7])
def test_one_stage_tells_waiting_for_the_others_from_transfer(tmp_path, rank):
    job = job_of((1, 2, 4), layers=16)
    write(tmp_path / "run", simulate(job)[0])
    whole, graph = (build_graph(load_trace([tmp_path / "run" / name])) for name in ("", f"rank{rank}.json.gz"))
    predicted = predict_change(graph, [parse_change("scale:matmul=0.5"), parse_change("scale:attention=0.5")])
    truth = seconds_of(replace(job, matmul=0.5, seed=3))
    assert predicted.value == pytest.approx(truth, rel=0.09)
    assert predicted.low <= truth <= predicted.high < 1.5 * truth
    for each in (whole, graph):
        parts = step_parts(each, step_time(each).measured_s)
        operations = [rank.operations for rank in each.trace.ranks]
        work = max(sum((found.end - found.start)[found.kind == 0]) for found in operations) / job.steps
        assert parts.compute_s == pytest.approx(1e-9 * work, rel=0.01)
    assert parts.bubble_s > 0.2 * step_time(graph).measured_s
    assert "waiting" in report_replay(graph).critical_path_shares


def test_nothing_that_is_not_matched_passes_for_known(graph):
    """Without names of groups the transfers of a pipeline match nothing: that shows, and intervals hold the truth."""
    job = job_of((1, 2, 4), named=False)
    found = graph(job)
    assert verdict(found) is QualityVerdict.DOUBTFUL
    predicted = predict_change(found, [parse_change("scale:matmul=0.5")])
    assert predicted.low <= seconds_of(replace(job, matmul=0.5, seed=3)) <= predicted.high


def test_bandwidth_and_waiting_are_told_group_by_group(graph):
    report = report_replay(graph(job_of((2, 2, 2))))
    assert {(each.kind, each.group, each.size) for each in report.groups} == {
        ("all-reduce", "TENSOR_MODEL_PARALLEL_GROUP", 2), ("all-reduce", "DATA_PARALLEL_GROUP", 2),
        ("send-recv", "PIPELINE_MODEL_PARALLEL_GROUP", 2),
    }  # fmt: skip
    (gradients,) = (each for each in report.groups if each.group.startswith("DATA"))
    assert gradients.bus_bandwidth == pytest.approx(3e11, rel=0.05)
    transfers = next(each for each in report.groups if each.kind == "send-recv")
    assert transfers.waiting_s > 5 * transfers.transfer_s
    assert min(rank.breakdown.bubble_s or 0.0 for rank in report.ranks) > 0
    assert all(rank.breakdown.bubble_s == 0 for rank in report_replay(graph(job_of((4, 2, 1)), 1)).ranks)


def test_times_are_of_a_step_however_many_were_recorded(graph):
    one, three = (report_replay(graph(replace(job_of((2, 2, 2)), steps=steps), steps)) for steps in (1, 3))
    for report in (one, three):
        step = report.step_time_s.replayed_s
        assert max(rank.breakdown.window_s for rank in report.ranks) == pytest.approx(step, rel=0.06)
        whole = sum(part.share for part in report.critical_path)
        assert sum(part.time_s for part in report.critical_path) == pytest.approx(whole * step, rel=0.06)
    assert [each.calls for each in three.groups] == [each.calls for each in one.groups]
    assert one.groups[0].transfer_s == pytest.approx(three.groups[0].transfer_s, rel=0.1)
    assert three.notes == []


def planted(number):
    """One slow rank of eight, in a layout and by a factor that follow from the number."""
    layout = LAYOUTS[number % len(LAYOUTS)]
    rank, factor = (number * 5 + 3) % 8, (1.08, 1.15, 1.3)[number % 3]
    return rank, job_of(layout, seed=number, slow={rank: factor}, layers=8, steps=2)


@pytest.mark.slow
def test_the_slow_rank_is_named_first(graph):
    jobs = [planted(number) for number in range(20)]
    found = [slow_ranks(graph(job, number))[:1] for number, (_, job) in enumerate(jobs)]
    assert sum([rank] == [each.rank for each in one] for (rank, _), one in zip(jobs, found, strict=True)) >= 19


def test_the_diagnosis_names_the_slow_rank_too(graph):
    found = graph(job_of((2, 2, 2), slow={0: 1.3, 5: 1.15}))
    causes = diagnose(profile_of(found, "run"), replay=report_replay(found)).leading(1)
    said = next(cause.statement for cause in causes if cause.name == "slow_rank")
    assert all(rank in said for rank in ("rank 0", "rank 5"))


@pytest.mark.parametrize("layout", LAYOUTS, ids=str)
def test_no_rank_is_slow_where_none_is(graph, layout):
    found = graph(job_of(layout))
    assert slow_ranks(found) == []
    causes = diagnose(profile_of(found, ""), replay=report_replay(found)).causes
    assert "slow_rank" not in [each.name for each in causes]


def test_clocks_are_aligned_from_group_to_group(tmp_path):
    """No group holds all ranks: the clock of the first goes through tensor, data and pipeline groups."""
    ranks, _ = simulate(job_of((2, 2, 2)))
    for number, events in enumerate(ranks):
        for event in events:
            event["ts"] += 1_000_000 * number
    found = build_graph(load_trace([write(tmp_path / "apart", ranks)]))
    assert found.trace.clock_spread_s == pytest.approx(0, abs=1e-6)
    assert step_time(found).replayed_s == pytest.approx(seconds_of(job_of((2, 2, 2))), rel=0.02)


def test_edges_grow_with_the_ranks_and_not_with_their_square(graph):
    few, many = (graph(Job(tp=1, dp=dp, pp=1, layers=2, microbatches=1, steps=1), dp) for dp in (2, 16))
    assert len(many.edges) < 9 * len(few.edges)
