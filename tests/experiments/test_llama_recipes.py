"""Meta's llama-recipes by the arguments of its command."""

import pytest

from asap.core.errors import ConfigError
from asap.plans import Plan
from asap.stacks.launchers import launch_lines, stack_of
from tests.experiments.stack_configurations import read

__all__ = ["read"]

SCRIPT = """#SBATCH --nodes=2
srun torchrun --nnodes 2 --nproc_per_node 8 recipes/finetuning/finetuning.py --enable_fsdp --low_cpu_fsdp \\
    --model_name meta-llama/Llama-2-13b-hf --fsdp_config.pure_bf16 --batch_size_training 2 --use_fast_kernels \\
    --gradient_accumulation_steps 4 --batching_strategy packing --context_length 2048 > tune.log 2>&1
"""


def test_a_run_over_all_devices(read):
    run = read("run.sh", SCRIPT)
    assert str(run.plan) == "data=16 microbatches=4 remat=full"
    work = run.workload
    assert (work.global_batch, work.sequence_length, work.zero_stage) == (128, 2048, 3)
    assert (work.precision, work.weight_precision, work.attention) == ("bf16", "bf16", "flash")
    assert (run.model.layers, run.hardware.devices, stack_of(work.framework)) == (40, 16, "fsdp")


def test_a_hybrid_strategy_shards_within_a_node_or_the_group_that_is_said(read):
    hybrid = SCRIPT.replace("--low_cpu_fsdp", "--fsdp_config.sharding_strategy ShardingStrategy.HYBRID_SHARD")
    assert read("run.sh", hybrid).plan.degree("replica") == 2
    groups = hybrid.replace("--use_fast", "--hsdp --sharding_group_size 4 --use_fast")
    assert read("run.sh", groups).plan.degree("replica") == 4


def test_what_is_not_said_is_as_the_program_has_it(read):
    bare = "torchrun --nproc_per_node 4 llama_finetuning.py --enable_fsdp --model_name /ckpt/Llama-2-7b-hf\n"
    run = read("run.sh", bare)
    assert (str(run.plan), run.workload.global_batch) == ("data=4 microbatches=1 remat=full", 16)
    assert (run.workload.sequence_length, run.workload.precision) == (None, "bf16")
    assert any(note.startswith("weights are taken as fp32") for note in run.notes)
    alone = read("run.sh", "python finetuning.py --use_fast_kernels --model_name meta-llama/Llama-3.2-1B\n")
    assert (alone.hardware.devices, str(alone.plan)) == (1, "microbatches=1 remat=none")


def test_padded_sequences_have_the_length_of_the_data(read):
    padded = read("run.sh", SCRIPT.replace("batching_strategy packing", "batching_strategy padding"))
    assert (padded.workload.sequence_length, padded.workload.global_batch) == (None, 128)
    assert any(note.startswith("context_length counts where sequences are packed") for note in padded.notes)


def test_arguments_of_anothers_own_are_named(read):
    more = "--lr 1e-5 --custom_dataset.file a.py --train_head_alone true --batching"
    run = read("run.sh", SCRIPT.replace("--batching", more))
    assert [note for note in run.notes if note.startswith("llama-recipes has no")] == [
        "llama-recipes has no train_head_alone: what that changes is not read"
    ]
    assert not any("llama-recipes has no" in note for note in read("run.sh", SCRIPT).notes)


def test_a_batch_that_a_variable_has_is_asked_for(read):
    run = read("run.sh", SCRIPT.replace("training 2", "training $EACH"))
    assert (run.workload.global_batch, run.plan.microbatches) == (None, 4)
    assert any("add batch_size_training=…" in note for note in run.notes)
    assert read("run.sh", SCRIPT.replace("training 2", "training $EACH"), "EACH=1").workload.global_batch == 64


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("--low_cpu_fsdp", "--use_peft --peft_method lora", "use_peft: training a part of the parameters"),
        ("--low_cpu_fsdp", "--quantization 4bit", "quantized weights"),
        ("--enable_fsdp", "--use_fp16", "16 processes without --enable_fsdp"),
        ("--low_cpu_fsdp", "--micro_batch_size 1", "micro_batch_size means another thing by version"),
    ],
)
def test_what_is_not_read_says_so(read, old, new, said):
    with pytest.raises(ConfigError, match=said):
        read("run.sh", SCRIPT.replace(old, new))


def test_ranks_without_fsdp_train_apart(read):
    start = "srun python finetuning.py --use_fast_kernels --model_name meta-llama/Llama-3.2-1B\n"
    with pytest.raises(ConfigError, match="starts several processes without --enable_fsdp"):
        read("run.sh", f"export RANK=$SLURM_PROCID\n{start}")


def test_lines_to_paste(read):
    run = read("run.sh", SCRIPT)

    def line(plan: str) -> str:
        return launch_lines(Plan.parse(plan), "fsdp", run.hyperparameters, global_batch=128)

    assert line("data=16 microbatches=2 remat=full") == "--batch_size_training 4 --gradient_accumulation_steps 2"
    assert line("data=16 microbatches=4 remat=none") == "--fsdp_activation_checkpointing False"
