"""Experts under torchtitan lie whole over the devices of tensor and context parallelism: read, and as a line."""

import pytest

from asap.plans import Plan
from asap.proposals.launch import launcher_line
from asap.study.study import study_of

JOB = """
[model]
name = "{name}"
flavor = "{flavor}"
[training]
local_batch_size = 8
seq_len = 4096
[parallelism]
tensor_parallel_degree = {tensor}
expert_parallel_degree = {expert}
"""
MIXTURE = {"name": "qwen3", "flavor": "30B-A3B"}


@pytest.mark.parametrize(
    ("model", "tensor", "expert", "over"),
    [
        (MIXTURE, 1, 8, ("model", "seq")),
        (MIXTURE, 1, 1, ("model", "seq")),
        (MIXTURE, 4, 8, ("model", "seq")),
        (MIXTURE, 4, 1, ()),
        ({"name": "llama3", "flavor": "8B"}, 1, 1, ()),
    ],
)
def test_experts_of_a_run_lie_over(read, model, tensor, expert, over):
    run = read("job.toml", JOB.format(**model, tensor=tensor, expert=expert), hardware="h100-64")
    assert run.workload.experts_over == over


@pytest.mark.parametrize(
    ("now", "plan", "degree"),
    [
        (8, "data=4 model=2 expert=8", "expert_parallel_degree = 16"),
        (1, "data=16 model=2 expert=2", "expert_parallel_degree = 4"),
        (1, "data=32 model=2", "expert_parallel_degree = 2"),
        (4, "data=64", "expert_parallel_degree = 1"),
    ],
)
def test_a_line_lays_experts_as_the_plan_that_is_predicted(read, now, plan, degree):
    run = read("job.toml", JOB.format(**MIXTURE, tensor=1, expert=now), hardware="h100-64")
    line = launcher_line(study_of(run), Plan.parse(f"{plan} microbatches=1 remat=full"))
    assert f"{degree}\n" in line
    assert "expert_tensor" not in line


def test_a_dense_model_gets_no_experts(read):
    run = read("job.toml", JOB.format(name="llama3", flavor="8B", tensor=1, expert=1), hardware="h100-64")
    assert "expert" not in launcher_line(study_of(run), Plan.parse("data=32 model=2 microbatches=1 remat=full"))
