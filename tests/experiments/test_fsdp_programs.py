"""Programs under PyTorch's FSDP: verl's fine-tuning and llm-recipes, read and told what to change."""

import json

import pytest

from asap.core.errors import ConfigError
from asap.plans import Plan
from asap.stacks.launchers import inexpressible, launch_lines, stack_of
from tests.experiments.stack_configurations import read

__all__ = ["read"]

VERL = """torchrun --nnodes=2 --nproc_per_node=8 -m verl.trainer.fsdp_sft_trainer \\
    data.train_batch_size=128 data.micro_batch_size_per_gpu=2 data.max_length=8192 \\
    model.partial_pretrain=$HOME/models/Qwen3-8B ulysses_sequence_parallel_size=2 trainer.logger=['console']
"""
RECIPES = """GPUS=$((2 * 8))
mpirun -np $GPUS --npernode 8 -x PATH python examples/finetuning.py --seq-length 4096 --micro-batch-size 2 \\
    --global-batch-size 256 --base-model /checkpoints/Qwen3-8B --lr 1e-5 --grad-clip-norm 1 --bf16 --mixed-precision \\
    --low-cpu-fsdp --sharding-strategy FULL_SHARD --fsdp-activation-checkpointing
"""


def line(run, plan: str, batch: int) -> str:
    return launch_lines(Plan.parse(plan), "fsdp", run.hyperparameters, global_batch=batch)


def test_fine_tuning_by_verl(read):
    run = read("run.sh", VERL)
    assert str(run.plan) == "data=8 seq=2 microbatches=8 remat=full"
    work = run.workload
    assert (work.global_batch, work.sequence_length, work.zero_stage) == (128, 8192, 3)
    assert (work.precision, work.weight_precision, work.context_parallel) == ("bf16", None, "ulysses")
    assert (run.model.layers, run.hardware.devices, stack_of(work.framework)) == (36, 16, "fsdp")
    other = "model.enable_gradient_checkpointing=false data.train_batch_size=64"
    said = read("run.sh", VERL, *other.split(), "model.fsdp_config.model_dtype=bf16")
    assert (str(said.plan), said.workload.weight_precision) == ("data=8 seq=2 microbatches=4 remat=none", "bf16")
    moved = "model.fsdp_config.cpu_offload=true model.fsdp_config.offload_params=true"
    assert read("run.sh", VERL, *moved.split()).plan.offload == ("optimizer", "parameters")


def test_a_program_with_the_settings_of_verl_is_taken_as_verl(read):
    own = read("run.sh", VERL.replace("-m verl.trainer.fsdp_sft_trainer", "ours/sft_curriculum.py"))
    assert str(own.plan) == "data=8 seq=2 microbatches=8 remat=full"
    assert any(note.startswith("ours/sft_curriculum.py has the settings of verl's") for note in own.notes)


def test_defaults_of_verl_are_those_of_its_repository(read, tmp_path):
    bare = "torchrun --nproc_per_node=8 -m verl.trainer.fsdp_sft_trainer model.partial_pretrain=Qwen/Qwen3-8B\n"
    run = read("run.sh", bare)
    assert (run.workload.global_batch, run.plan.microbatches, run.workload.sequence_length) == (256, 8, 1024)
    folder = tmp_path / "verl" / "trainer" / "config"
    folder.mkdir(parents=True)
    own = {"data": {"train_batch_size": 64, "micro_batch_size_per_gpu": 1}, "model": {"partial_pretrain": "x"}}
    (folder / "sft_trainer.yaml").write_text(json.dumps(own))
    assert (read("run.sh", bare).workload.global_batch, read("run.sh", bare).plan.microbatches) == (64, 8)
    alone = read("sft.yaml", json.dumps(own), hardware="h100-16")
    assert str(alone.plan) == "data=16 microbatches=4 remat=full"


def test_a_micro_batch_that_depends_on_the_version_is_asked_for(read):
    script = VERL.replace("micro_batch_size_per_gpu", "micro_batch_size")
    run = read("run.sh", script)
    assert run.plan.microbatches is None
    assert any("data.micro_batch_size means another thing by version" in note for note in run.notes)
    assert read("run.sh", script, "data.micro_batch_size_per_gpu=4").plan.microbatches == 4


def test_plans_of_verl(read):
    run = read("run.sh", VERL)
    assert line(run, "data=16 microbatches=4 remat=full", 128) == "ulysses_sequence_parallel_size=1"
    wider = line(run, "data=8 seq=2 microbatches=4 remat=none", 128)
    assert wider == "model.enable_gradient_checkpointing=false data.micro_batch_size_per_gpu=4"
    for plan in ("replica=16", "data=8 model=2", "data=16 offload=optimizer", "data=16 remat=selective"):
        assert inexpressible(Plan.parse(plan), "fsdp", run.hyperparameters, 128), plan


@pytest.mark.parametrize(
    ("script", "said"),
    [
        (VERL.replace("data.max", "model.lora_rank=16 data.max"), "model.lora_rank=16: training a part"),
        (VERL.replace("=128", "=130"), "is not a multiple of"),
        (VERL.replace("data.max", "--config_path=x/gone.yaml data.max"), "which is not there"),
        (VERL.replace("fsdp_sft_trainer", "main_ppo"), "a script of verl"),
        (RECIPES.replace("--low-cpu-fsdp", "--direct-preference-optimization"), "training on preferences"),
        (RECIPES.replace("--low-cpu-fsdp", "--use-freeze-layers"), "training a part of the parameters"),
        (RECIPES.replace("--low-cpu-fsdp", "--use-zero --zero-stage 3"), "moe-recipes, which DeepSpeed shards"),
        (RECIPES.replace("FULL_SHARD", "SOME"), "sharding_strategy must be one of"),
    ],
)
def test_what_is_not_read_says_so(read, script, said):
    with pytest.raises(ConfigError, match=said):
        read("run.sh", script)


def test_a_configuration_of_rewards_is_known_by_name(read):
    with pytest.raises(ConfigError, match="verl configuration of reinforcement learning"):
        read("ppo.yaml", "actor_rollout_ref: {model: {path: x}}\ntrainer: {nnodes: 1}\ndata: {train_batch_size: 8}")


def test_llm_recipes(read):
    run = read("run.sh", RECIPES)
    assert str(run.plan) == "data=16 microbatches=8 remat=full"
    work = run.workload
    assert (work.global_batch, work.sequence_length, work.precision, work.weight_precision) == (
        256,
        4096,
        "bf16",
        "bf16",
    )
    assert (run.model.layers, run.hardware.devices, work.zero_stage) == (36, 16, 3)
    whole = read("run.sh", RECIPES.replace("FULL_SHARD", "NO_SHARD").replace("--fsdp-act", "--no-act"))
    assert (str(whole.plan), whole.workload.zero_stage) == ("replica=16 microbatches=8 remat=none", 0)
    assert str(read("run.sh", RECIPES.replace("FULL", "HYBRID")).plan) == "replica=2 data=8 microbatches=8 remat=full"
    gathered = read("run.sh", RECIPES.replace("FULL_SHARD", "SHARD_GRAD_OP"))
    assert any("taken as gathered twice" in note for note in gathered.notes)


def test_what_only_a_run_can_tell_is_asked_for(read):
    run = read("run.sh", RECIPES.replace("size 256", "size $BATCH").replace("FULL_SHARD", "$HOW"))
    assert (run.plan, run.workload.global_batch) == (None, None)
    assert any("hangs on sharding_strategy" in note for note in run.notes)
    told = read("run.sh", RECIPES.replace("FULL_SHARD", "$HOW"), "sharding_strategy=NO_SHARD")
    assert told.plan.degree("replica") == 16
    open_ = read("run.sh", RECIPES.replace("--micro-batch-size 2", "--micro-batch-size $MICRO"))
    assert (open_.plan.microbatches, open_.workload.global_batch) == (None, 256)


def test_plans_of_llm_recipes(read):
    run = read("run.sh", RECIPES)
    assert line(run, "replica=16 microbatches=4 remat=none", 256) == (
        "--sharding-strategy NO_SHARD --micro-batch-size 4 # without --fsdp-activation-checkpointing"
    )
    assert line(run, "replica=2 data=8 microbatches=8", 256) == "--sharding-strategy HYBRID_SHARD"
    assert line(run, "data=16 offload=optimizer+parameters", 256) == "--fsdp-cpu-offload"
    assert inexpressible(Plan.parse("replica=4 data=4"), "fsdp", run.hyperparameters, 256)
    assert inexpressible(Plan.parse("data=8 seq=2"), "fsdp", run.hyperparameters, 256)
