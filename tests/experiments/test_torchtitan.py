"""The JSON that a run of torchtitan writes, lines for its configurations in Python, and where experts lie."""

import json
import tomllib

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from asap.core.errors import ConfigError, PlanError
from asap.optimize.evaluators.run.command import words
from asap.plans import Mesh, Plan, Remat
from asap.proposals.launch import launcher_line
from asap.proposals.proposal import Overrides
from asap.stacks.launchers import launch_lines
from asap.stacks.reading import from_settings, global_batch_of
from asap.stacks.registry import spec
from asap.stacks.stack_settings import dotted
from asap.study.study import study_of
from tests.cases import cases, kept, listed

SELECTIVE = {"preserve_rng_state": True, "force_recompute_mm_shapes_by_fqns": ["moe.router.gate"]}
SAVED = {
    "model_spec": {
        "name": "llama3", "flavor": "8B", "model": {"dim": 4096, "vocab_size": 128256, "layers": [{}] * 32},
    },
    "optimizer": {"param_groups": [{"pattern": ".*", "optimizer_name": "AdamW"}], "implementation": "fused"},
    "training": {
        "num_tokens_per_microbatch_per_dp_rank": 16384, "num_tokens_per_train_step": -1, "max_context_length": 8192,
    },
    "parallelism": {"data_parallel_shard_degree": -1, "tensor_parallel_degree": 2, "num_pp_microbatches": 1},
    "activation_checkpoint": SELECTIVE,
    "metrics": {},
}  # fmt: skip
POWERS = st.sampled_from((1, 2, 4))


def saved(**sections: object) -> str:
    return json.dumps(SAVED | sections)


def test_batches_in_tokens_are_sequences_of_the_longest_context(read):
    run = read("config.json", saved(), hardware="h100-8")
    assert str(run.plan) == "data=4 model=2 microbatches=1 remat=minimal"
    assert (run.model.layers, run.workload.global_batch, run.workload.sequence_length) == (32, 8, 8192)
    assert (run.workload.optimizer, run.workload.framework) == ("adamw", "torchtitan")
    assert not any(key.startswith("model_spec") for key in run.hyperparameters)
    training = SAVED["training"] | {"num_tokens_per_train_step": 8192 * 32}
    more = read("config.json", saved(training=training), hardware="h100-8")
    assert (str(more.plan), more.workload.global_batch) == ("data=4 model=2 microbatches=4 remat=minimal", 32)


def test_a_loss_in_parts(read):
    run = read("config.json", saved(loss={"num_chunks": 8, "loss_fn": {}}), hardware="h100-8")
    assert (run.workload.loss_chunks, read("config.json", saved()).workload.loss_chunks) == (8, None)


def test_fp8_is_not_told_and_asked_for(read):
    run = read("config.json", saved(), hardware="h100-8")
    assert run.workload.precision is None
    assert any("add workload.precision=fp8" in note for note in run.notes)
    assert read("config.json", saved(), "workload.precision=fp8", hardware="h100-8").workload.precision == "fp8"


@cases("recomputation, remat")
def test_what_is_recomputed(read, recomputation, remat):
    run = read("config.json", saved(activation_checkpoint=recomputation), hardware="h100-8")
    assert run.plan.remat == Remat(remat)


def test_a_memory_budget_is_unknown_and_moments_in_bf16_are_read(read):
    optimizer = SAVED["optimizer"] | {"implementation": "fused_opt_states_bf16"}
    run = read(
        "config.json", saved(activation_checkpoint={"memory_budget": 0.5}, optimizer=optimizer), hardware="h100-8"
    )
    assert (run.plan.remat, run.workload.second_moment_precision) == (None, "bf16")


def test_shapes_of_the_file_win_over_those_of_the_flavor(read):
    spec = SAVED["model_spec"]
    fewer = spec | {"model": {"dim": 4096, "vocab_size": 128256, "layers": [{}] * 4}}
    run = read("config.json", saved(model_spec=fewer), hardware="h100-8")
    assert (run.model.layers, run.model.heads) == (4, 32)
    wider = read("config.json", saved(model_spec=spec | {"model": {"dim": 512}}), hardware="h100-8")
    assert (wider.model.d_model, wider.model.heads) == (512, None)
    assert all(any("unlike its flavor" in note for note in found.notes) for found in (run, wider))


def test_tokens_that_are_no_whole_sequences_are_refused(read):
    training = SAVED["training"] | {"num_tokens_per_microbatch_per_dp_rank": 10_000}
    with pytest.raises(ConfigError, match=r"is no multiple of training\.max_context_length=8192"):
        read("config.json", saved(training=training), hardware="h100-8")


@given(st.builds(Mesh, replica=POWERS, data=POWERS, model=POWERS, stage=POWERS), st.sampled_from((1, 2, 4)))
def test_lines_in_tokens_read_back_are_the_plan(mesh, microbatches):
    assume(microbatches >= mesh.stage)
    plan = Plan(ici=mesh, microbatches=microbatches, remat=Remat.FULL)
    present = {f"training.{key}": value for key, value in SAVED["training"].items()}
    line = launch_lines(plan, "torchtitan", present, global_batch=256, layers=32)
    assert "local_batch_size" not in line
    pasted = present | dotted(tomllib.loads(line))
    assert from_settings(spec("torchtitan"), pasted, plan.devices, layers=32) == plan
    assert global_batch_of(spec("torchtitan"), pasted, plan) == 256


def test_statements_are_flags_except_for_what_is_recomputed():
    statements = "config.training.steps = 5\nconfig.a.b = True\nconfig.a.c = False"
    assert words(Overrides(stack="torchtitan", text=statements)) == "--training.steps=5 --a.b --a.no_c"
    assert (
        words(Overrides(stack="torchtitan", text="[training]\nenable_cpu_offload = false"))
        == "--training.no_enable_cpu_offload"
    )
    with pytest.raises(PlanError, match="which no flag says"):
        words(Overrides(stack="torchtitan", text="config.activation_checkpoint = None"))


JOB = kept(__file__)["JOB"]
MIXTURE = {"name": "qwen3", "flavor": "30B-A3B"}


@cases("model, tensor, expert, over")
def test_experts_of_a_run_lie_over(read, model, tensor, expert, over):
    run = read("job.toml", JOB.format(**model, tensor=tensor, expert=expert), hardware="h100-64")
    assert listed(run.workload.experts_over) == over


@cases("now, plan, degree")
def test_a_line_lays_experts_as_the_plan_that_is_predicted(read, now, plan, degree):
    run = read("job.toml", JOB.format(**MIXTURE, tensor=1, expert=now), hardware="h100-64")
    line = launcher_line(study_of(run), Plan.parse(f"{plan} microbatches=1 remat=full"))
    assert degree in line.split("\n")
    assert "expert_tensor" not in line


def test_a_dense_model_gets_no_experts(read):
    run = read("job.toml", JOB.format(name="llama3", flavor="8B", tensor=1, expert=1), hardware="h100-64")
    assert "expert" not in launcher_line(study_of(run), Plan.parse("data=32 model=2 microbatches=1 remat=full"))
