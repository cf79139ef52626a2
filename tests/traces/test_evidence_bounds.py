"""No setting is said to save more than the recorded run holds of what it removes."""

from dataclasses import replace

import pytest
from made_runs import Run, simulate, study_of, write

from asap.levers.table import TRIALS
from asap.models import Architecture, Workload
from asap.plans import Plan
from asap.proposals.trials import most_held, trials_of
from asap.traces.graph.build import build_graph
from asap.traces.recording import load_trace
from asap.traces.summary import QUESTIONS, report_replay

MODEL = Architecture(layers=4, d_model=256, d_ff=1024, heads=4, kv_heads=4, head_dim=64, vocab=1024)
WORK = Workload(global_batch=8, sequence_length=256, framework="Megatron-LM", attention="flash")


def replay_of(folder, run):
    return report_replay(build_graph(load_trace([write(folder, simulate(run))])))


def test_host_bound_time_bounds_what_launching_less_saves(tmp_path):
    waits = replay_of(tmp_path / "waits", Run(host=600, kernel=100, loading=0))
    works = replay_of(tmp_path / "works", Run(host=5, kernel=900, loading=0))
    waits_for_host, works_on = (most_held(each, "remove:host") for each in (waits, works))
    assert waits_for_host > 0.5
    assert works_on < 0.05
    assert most_held(works, "") is None
    assert most_held(None, "remove:host") is None


def test_a_bound_is_a_change_that_a_replay_answers(tmp_path):
    report = replay_of(tmp_path, Run())
    bounds = {trial.at_most for trial in TRIALS if trial.at_most}
    assert bounds <= set(QUESTIONS)
    assert {"remove:host", "remove:compute"} <= bounds & {each.change for each in report.shortened_by}


@pytest.mark.parametrize(("host", "kernel"), [(5, 900), (600, 100)])
def test_no_offer_saves_more_than_the_trace_holds(tmp_path, host, kernel):
    path = write(tmp_path / "run", simulate(Run(host=host, kernel=kernel, loading=0)))
    study = study_of(
        tmp_path / "experiments", model=MODEL, workload=WORK, hardware={"name": "a100-80gb", "devices": 2},
        plan=Plan.parse("replica=2 microbatches=4"), profile_path=str(path),
        hyperparameters={"num_layers": 4, "transformer_impl": "transformer_engine"},
    )  # fmt: skip
    limits = {trial.name: most_held(study.replay, trial.at_most) for trial in TRIALS}
    without = {trial.name: trial for trial in trials_of(replace(study, recording=None))}
    for trial in trials_of(study):
        limit = limits[trial.name]
        assert limit is None or trial.gain is None or trial.gain <= limit
        assert trial.name in without
