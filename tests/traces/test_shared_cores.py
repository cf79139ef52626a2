"""Virtual devices of a CPU: who has its cores, and what that says of other runs."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from asap.core.errors import UsageError
from asap.experiments import ExperimentStore
from asap.plans import Plan
from asap.prediction.from_trace.predict import predict_run, what_if
from asap.prediction.from_trace.run import Run, changed_run, virtual_devices
from asap.study.open_study import open_study
from asap.traces.analysis.critical_path import core_times
from asap.traces.graph.build import build_graph
from asap.traces.recording import load_trace
from asap.traces.trace import Events, OperationKind, RankTrace

BUNDLED = Path(__file__).resolve().parents[2] / "asap" / "experiments" / "bundled" / "cpu-8dev"
COMPUTE, COMMUNICATION = OperationKind.COMPUTE, OperationKind.COMMUNICATION


def device(number, *operations):
    """Operations as name, start, end, kind."""
    names = list(dict.fromkeys(name for name, *_ in operations))
    rows = [(names.index(name), 0, start, end, -1, kind) for name, start, end, kind in operations]
    nothing = Events.of([])
    return RankTrace(number, names, ["device"], nothing, Events.of(rows), nothing, [], np.arange(1), True)


def test_what_runs_together_shares_the_time():
    one, other = device(0, ("a", 0, 100, COMPUTE)), device(1, ("a", 50, 150, COMPUTE))
    assert [times.tolist() for times in core_times([one, other])] == [[75], [75]]


def test_who_waits_in_a_collective_takes_nothing():
    early = device(0, ("all-reduce", 0, 120, COMMUNICATION))
    late = device(1, ("a", 0, 100, COMPUTE), ("all-reduce", 100, 120, COMMUNICATION))
    assert [times.tolist() for times in core_times([early, late])] == [[10], [100, 10]]


@pytest.fixture(scope="module")
def graph():
    return build_graph(load_trace([BUNDLED]))


@pytest.fixture(scope="module")
def traced():
    record = ExperimentStore().get("cpu-8dev")
    assert record.model is not None
    plan = Plan.parse("data=2 seq=2 model=2 remat=none")
    return Run(record.model, record.workload, virtual_devices(8), plan)


def test_times_of_all_devices_add_up_to_the_time_in_which_anything_ran(graph):
    ranks = graph.trace.ranks
    shared = sum(float(times.sum()) for times in core_times(ranks))
    first, last = min(rank.operations.start.min() for rank in ranks), max(rank.operations.end.max() for rank in ranks)
    assert 0.8 * (last - first) < shared <= last - first


def test_the_recorded_plan_takes_what_was_measured(graph, traced):
    found = predict_run(graph, traced, traced)
    assert (found.value, found.modelled) == (pytest.approx(found.measured, rel=0.01), 0)


def test_products_and_gradients_follow_the_batch_and_the_plan(graph, traced):
    twice = predict_run(graph, traced, changed_run(traced, ["batch=16"]))
    assert 1.4 * twice.measured < twice.value < 2.1 * twice.measured
    sharded = replace(traced, plan=Plan.parse("data=8 remat=none"))
    assert predict_run(graph, traced, sharded).modelled == 0
    assert predict_run(graph, sharded, traced).modelled > 0


def test_a_run_of_a_cpu_needs_no_chip_on_record(graph):
    study = open_study("cpu-8dev", ExperimentStore())
    assert study.slice is None
    found = what_if(graph, ["plan:data=4 seq=2"], study, Plan.parse("data=2 seq=2 model=2 remat=none"))
    assert 0 < found.low < found.value < found.high
    with pytest.raises(UsageError, match="what another chip takes"):
        what_if(graph, ["chip:v5e"], study)


def test_more_devices_do_not_make_the_cores_faster(graph, traced):
    more = predict_run(graph, traced, changed_run(traced, ["ranks=16"]))
    assert more.value > 0.95 * more.measured
