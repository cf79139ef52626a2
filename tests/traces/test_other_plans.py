"""Other plans and other models predicted from the trace of one, against the simulator's truth under them."""

from dataclasses import replace
from itertools import product
from statistics import median

import pytest
from made_runs import study_of as recorded
from made_runs import write
from megatron import Job, seconds_of, simulate

from asap.models import Architecture, Workload
from asap.plans import Plan
from asap.prediction.from_trace.predict import what_if
from asap.prediction.from_trace.run import axes_of
from asap.traces.analysis.breakdown import step_parts
from asap.traces.graph.build import build_graph
from asap.traces.recording import load_trace
from asap.traces.summary import what_if_report

BATCH = 16
DEGREES = [each for each in product((1, 2, 4, 8), repeat=3) if each[0] * each[1] * each[2] == 8]


def job_of(degrees, **settings):
    return Job(*degrees, microbatches=BATCH // degrees[1], noise=0.01, **settings)


def study_of(job, folder):
    model = Architecture(
        layers=job.layers, d_model=job.hidden, d_ff=4 * job.hidden, heads=job.heads, kv_heads=job.heads,
        head_dim=job.hidden // job.heads, vocab=job.vocab, gated_mlp=False,
    )  # fmt: skip
    said = {"framework": "Megatron-LM", "attention": "flash", "overlaps_reduction": True}
    work = Workload(global_batch=BATCH, sequence_length=job.sequence, **said)
    plan = Plan.parse(f"replica={job.dp} model={job.tp} stage={job.pp} remat=none microbatches={job.microbatches}")
    return recorded(folder, model=model, workload=work, hardware={"name": "h100", "devices": job.ranks}, plan=plan)


def changes_from(job):
    for degrees in DEGREES:
        other = job_of(degrees, seed=7)
        if degrees != (job.tp, job.dp, job.pp):
            plan = f"plan:replica={other.dp} model={other.tp} stage={other.pp} data=1"
            yield [plan, f"microbatches={other.microbatches}"], other
    yield [f"layers={2 * job.layers}"], replace(job, layers=2 * job.layers, seed=7)
    yield [f"sequence={2 * job.sequence}"], replace(job, sequence=2 * job.sequence, seed=7)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("degrees", "rank", "usual", "worst"),
    [((2, 2, 2), "", 0.04, 0.1), ((1, 8, 1), "", 0.05, 0.09), ((1, 1, 8), "", 0.04, 0.06), ((8, 1, 1), "", 0.09, 0.13),
     ((2, 2, 2), "rank0", 0.05, 0.1), ((1, 1, 8), "rank3", 0.04, 0.1), ((1, 2, 4), "rank7", 0.04, 0.15)],
)  # fmt: skip
def test_plans_and_models_are_predicted_from_the_trace_of_one(tmp_path, degrees, rank, usual, worst):
    """From all ranks, or from one: a first, a middle and a last stage say by their waits what the others take."""
    job = job_of(degrees)
    write(tmp_path / "run", simulate(job)[0])
    graph = build_graph(load_trace([tmp_path / "run" / f"{rank}.json.gz" if rank else tmp_path / "run"]))
    study, errors, inside = study_of(job, tmp_path / "experiments"), [], []
    for changes, other in changes_from(job):
        found, truth = what_if(graph, changes, study), seconds_of(other)
        errors.append(abs(found.value / truth - 1))
        inside.append(found.low <= truth <= found.high)
    assert median(errors) <= usual
    assert max(errors) <= worst
    assert all(inside)


def test_another_plan_has_its_own_bubble_and_parts(tmp_path):
    traced, other = job_of((1, 2, 4)), job_of((1, 8, 1), seed=7)
    graph, truth = (
        build_graph(load_trace([write(tmp_path / f"{job.dp}", simulate(job)[0])])) for job in (traced, other)
    )
    changes = ["plan:replica=8 model=1 stage=1 data=1", "microbatches=2"]
    report = what_if_report(graph, changes, what_if(graph, changes, study_of(traced, tmp_path / "experiments")))
    known = step_parts(truth, seconds_of(other))
    assert sum(report.after.model_dump().values()) == pytest.approx(report.step_time_s.value)
    assert sum(report.now.model_dump().values()) == pytest.approx(report.measured_s)
    assert report.now.bubble_s > 0.1 * report.measured_s
    assert report.after.bubble_s < 0.01 * report.measured_s
    assert report.after.compute_s == pytest.approx(known.compute_s, rel=0.05)
    assert sum(report.critical_path_shares.values()) == pytest.approx(1)


def test_a_group_is_the_axes_that_its_ranks_lie_along():
    plan = Plan.parse("model=2 data=2 replica=2 stage=4")
    assert axes_of((0, 1), plan) == ("model",)
    assert axes_of((1, 3), plan) == ("data",)
    assert axes_of((0, 2, 4, 6), plan) == ("data", "replica")
    assert axes_of((3, 11, 19, 27), plan) == ("stage",)
    assert axes_of((0, 3), plan) == ()
    assert axes_of((5,), plan) == ()
