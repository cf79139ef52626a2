"""Experts under torchtitan lie whole over the devices of tensor and context parallelism: read, and as a line."""

from asap.plans import Plan
from asap.proposals.launch import launcher_line
from asap.study.study import study_of
from tests.cases import cases, kept, listed

KEPT = kept(__file__)

JOB = KEPT["JOB"]
MIXTURE = {"name": "qwen3", "flavor": "30B-A3B"}


@cases("model, tensor, expert, over")
def test_experts_of_a_run_lie_over(read, model, tensor, expert, over):
    run = read("job.toml", JOB.format(**model, tensor=tensor, expert=expert), hardware="h100-64")
    assert listed(run.workload.experts_over) == over


@cases("now, plan, degree")
def test_a_line_lays_experts_as_the_plan_that_is_predicted(read, now, plan, degree):
    run = read("job.toml", JOB.format(**MIXTURE, tensor=1, expert=now), hardware="h100-64")
    line = launcher_line(study_of(run), Plan.parse(f"{plan} microbatches=1 remat=full"))
    assert f"{degree}\n" in line
    assert "expert_tensor" not in line


def test_a_dense_model_gets_no_experts(read):
    run = read("job.toml", JOB.format(name="llama3", flavor="8B", tensor=1, expert=1), hardware="h100-64")
    assert "expert" not in launcher_line(study_of(run), Plan.parse("data=32 model=2 microbatches=1 remat=full"))
