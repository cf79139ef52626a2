"""Earlier versions and forks of Megatron-LM: their words are read, and none that they lack is proposed."""

import re

import pytest

from asap.core.errors import ConfigError, PlanError
from asap.diagnosis.diagnose import diagnose
from asap.plans import Plan, Remat
from asap.stacks.launchers import inexpressible, launch_lines
from tests.experiments.stack_configurations import MEGATRON, read

__all__ = ["read"]

PLAIN = MEGATRON.replace(" --recompute-granularity full", "")


def line(run, plan: str) -> str:
    return launch_lines(Plan.parse(plan), "megatron", run.hyperparameters, global_batch=256, layers=32)


@pytest.mark.parametrize(
    ("sign", "plan", "missing"),
    [
        ("--no-query-key-layer-scaling", "replica=4 seq=2 model=4 stage=2", "--context-parallel-size"),
        ("--data-impl mmap", "data=8 model=4 stage=2", "--use-megatron-fsdp"),
        ("--attention-head-type multiquery", "replica=4 seq=2 model=4 stage=2", "--context-parallel-size"),
        ("--DDP-impl local", "replica=8 model=4 stage=2 offload=optimizer", "--optimizer-cpu-offload"),
        ("--retro-workdir x", "replica=8 model=4 stage=2 offload=optimizer", "--optimizer-cpu-offload"),
        ("--retro-workdir x", "data=8 model=4 stage=2", "--use-megatron-fsdp"),
        ("--activations-checkpoint-method block", "replica=8 model=4 stage=2 remat=selective", "--recompute-gran"),
        ("--checkpoint-activations", "replica=8 model=4 stage=2 remat=selective", "--recompute-granularity"),
        ("--checkpoint-activations", "replica=4 seq=2 model=4 stage=2", "--context-parallel-size"),
        ("--pad-vocab-size-to 128256", "replica=8 model=4 stage=2 remat=selective", "--recompute-granularity"),
    ],
)
def test_an_argument_that_came_later_is_not_proposed(read, sign, plan, missing):
    run = read("train.sh", PLAIN.replace("--bf16", f"--bf16 {sign}"))
    with pytest.raises(PlanError, match=f"takes {sign.split()[0]} has no {missing}"):
        line(run, plan)
    assert inexpressible(Plan.parse(plan), "megatron", run.hyperparameters, 256, 32) is not None
    assert line(run, "replica=4 model=8 stage=2 microbatches=32") == "--tensor-model-parallel-size 8"
    today = read("train.sh", PLAIN)
    assert missing in line(today, plan)


def test_what_a_later_version_has_is_still_proposed_where_it_is_on_record(read):
    said = "--bf16 --no-query-key-layer-scaling --context-parallel-size 2"
    run = read("train.sh", PLAIN.replace("--bf16", said))
    assert "--context-parallel-size 4" in line(run, "replica=2 seq=4 model=4 stage=2")
    retro = read("train.sh", PLAIN.replace("--bf16", "--bf16 --retro-workdir x"))
    assert "--context-parallel-size 2" in line(retro, "replica=4 seq=2 model=4 stage=2")


def test_virtual_stages_go_by_layers_where_nothing_else_says_them(read):
    plan = "replica=8 model=4 stage=2 pipeline_repeats=2"
    assert line(read("train.sh", PLAIN), plan) == "--num-virtual-stages-per-pipeline-rank 2"
    old = read("train.sh", PLAIN.replace("--bf16", "--bf16 --DDP-impl local"))
    assert line(old, plan) == "--num-layers-per-virtual-pipeline-stage 8"


def test_recomputation_by_the_switches_of_before(read):
    run = read("train.sh", PLAIN.replace("--bf16", "--bf16 --activations-checkpoint-method uniform"))
    assert run.plan.remat is Remat.FULL
    assert line(run, "replica=8 model=4 stage=2 remat=none") == "# without --activations-checkpoint-method"
    bigscience = "--bf16 --deepspeed --deepspeed_config ds.json --zero-stage 1 --pad-vocab-size-to 128256"
    switched = read("train.sh", PLAIN.replace("--bf16", f"{bigscience} --checkpoint-activations"))
    assert (switched.plan.remat, switched.workload.framework) == (Remat.FULL, "Megatron-DeepSpeed")
    assert line(switched, "replica=8 model=4 stage=2 remat=none") == "# without --checkpoint-activations"
    kept = read("train.sh", PLAIN.replace("--bf16", bigscience))
    assert line(kept, "replica=8 model=4 stage=2 remat=full") == "--checkpoint-activations"
    with pytest.raises(PlanError, match="has no --ds-sequence-parallel-size"):
        line(kept, "replica=32 seq=2")


def test_options_are_joined_as_the_script_joins_them(read):
    underscored = re.sub(r"--[a-z-]+", lambda option: f"--{option[0][2:].replace('-', '_')}", PLAIN)
    run = read("train.sh", underscored)
    assert str(run.plan) == str(read("train.sh", PLAIN).plan)
    assert line(run, "replica=4 model=8 stage=2 microbatches=32") == "--tensor_model_parallel_size 8"


def test_a_model_in_the_words_of_forks(read):
    own = "--group-query-attention --num-query-groups 8"
    said = MEGATRON.replace(own, "--num-attention-heads-kv 8").replace("--swiglu", "--glu-activation swiglu")
    said = said.replace("--untie-embeddings-and-output-weights", "--no-tie-embed-logits --parallel-attn")
    run = read("train.sh", said.replace("--vocab-size 128256", "--pad-vocab-size-to 130048"))
    model = run.model
    assert (model.kv_heads, model.gated_mlp, model.tied_embeddings, model.parallel_block) == (8, True, False, True)
    assert model.vocab == 130_048
    absolute = MEGATRON.replace("position-embedding-type rope", "position-embedding-type absolute")
    assert read("train.sh", absolute).model.learned_positions == 8192
    assert read("train.sh", MEGATRON.replace("--bf16", "--bf16 --fp8-hybrid")).workload.precision == "fp8"
    with pytest.raises(ConfigError, match="glu_activation must be one of swiglu"):
        read("train.sh", said.replace("activation swiglu", "activation relu"))


@pytest.mark.parametrize(("sign", "capture"), [("", "--use-pytorch-profiler"), ("--data-impl mmap", "torch.profiler")])
def test_a_profile_is_asked_for_by_what_the_version_has(read, sign, capture):
    run = read("train.sh", PLAIN.replace("--bf16", f"--bf16 {sign}"))
    missing = diagnose(None, stack="megatron", settings=run.hyperparameters).missing
    assert [capture in (gap.capture or "") for gap in missing] == [True]
    assert ("--use-pytorch-profiler" in (missing[0].capture or "")) == (not sign)
