"""Options in variables that a script fills under conditions which it does not decide."""

import pytest

from asap.core.errors import ConfigError
from tests.experiments.stack_configurations import MEGATRON, read

__all__ = ["read"]

ARGUMENTS = "--model_name_or_path Qwen/Qwen3-8B --block_size 4096 --per_device_train_batch_size 1"
TORCHRUN = f"torchrun --nproc_per_node 8 train.py {ARGUMENTS}"
SWIFT = "NPROC_PER_NODE=8 swift sft --model Qwen/Qwen3-8B --tuner_type full --per_device_train_batch_size 2"
FILLED = 'MORE=()\nif [ "$KIND" = a ]; then MORE+=({}); fi\n'


@pytest.mark.parametrize(
    ("options", "start", "asked"),
    [
        ("--deepspeed z3.json", f'{TORCHRUN} "${{MORE[@]}}"', "deepspeed is set by a variable"),
        ("--fsdp full_shard", f"{TORCHRUN} $MORE", "fsdp is set by a variable"),
        ("", f'{TORCHRUN} --fsdp "$FSDP"', "fsdp is set by a variable"),
        ("--deepspeed zero3", f'{SWIFT} "${{MORE[@]}}"', r"sets deepspeed by .* \(add MORE=…\)"),
    ],
)
def test_sharding_that_a_branch_decides_is_asked(read, options, start, asked):
    with pytest.raises(ConfigError, match=asked):
        read("run.sh", FILLED.format(options) + start)


def test_what_a_branch_may_change_is_unknown(read):
    filled = FILLED.format("--gradient_checkpointing false --per_device_train_batch_size 4")
    run = read("run.sh", f'{filled}{TORCHRUN} --gradient_checkpointing true "${{MORE[@]}}"')
    assert run.workload.global_batch is None
    assert run.plan is not None
    assert run.plan.remat is None
    kept = read("run.sh", f'{filled}{TORCHRUN} --gradient_checkpointing true "${{MORE[@]}}"', "KIND=b")
    assert kept.workload.global_batch == 8


def test_sharding_can_be_said_where_a_branch_decides_it(read):
    script = FILLED.format("--fsdp full_shard") + f"{TORCHRUN} $MORE"
    assert str(read("run.sh", script, "fsdp=shard_grad_op").plan).startswith("data=8")
    assert str(read("run.sh", script, "fsdp=false").plan).startswith("replica=8")


@pytest.mark.parametrize(("more", "remat"), [("--load b", "none"), ("--load b $LATER", None)])
def test_recomputation_is_known_where_all_that_a_branch_adds_is_seen(read, more, remat):
    filled = f'source env.sh\nif [ -f a ]; then MORE="--load a"; else MORE="{more}"; fi\n'
    start = MEGATRON.replace("pretrain_gpt.py ", "pretrain_gpt.py $MORE ").replace("--recompute-granularity full", "")
    run = read("run.sh", filled + start, hardware="h100-64")
    assert (run.plan.remat and run.plan.remat.value) == remat
