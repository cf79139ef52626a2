"""Programs of the Trainer without a launcher, and what the Trainer takes where a command says nothing."""

import pytest

from asap.core.errors import ConfigError
from asap.plans import Remat
from tests.experiments.stack_configurations import read

__all__ = ["read"]

ARGUMENTS = (
    "--model_name_or_path Qwen/Qwen3-8B --per_device_train_batch_size 4 --gradient_accumulation_steps 2"
    " --block_size 4096 --bf16 True --save_strategy epoch"
)
OFF = "gradient_checkpointing=false"


@pytest.mark.parametrize("start", ["python3 train.py", "nohup python -u $FILE", "conda run -n llm python -m trainer"])
def test_python_alone_starts_one_process(read, start):
    run = read("run.sh", f"FILE=code/train.py\n{start} {ARGUMENTS} > run.log 2>&1 &\n")
    assert (run.hardware.devices, run.workload.global_batch, run.workload.sequence_length) == (1, 8, 4096)
    assert any(note.startswith("python starts one process") for note in run.notes)


def test_a_process_that_the_script_says_is_one_of_several(read):
    ranks = "export RANK=$SLURM_PROCID\nexport LOCAL_RANK=$SLURM_LOCALID\n"
    start = f'{ranks}export WORLD_SIZE=16\npython train.py {ARGUMENTS} --fsdp "full_shard auto_wrap"\n'
    run = read("run.sh", start)
    assert (run.hardware.devices, run.plan.degree("data"), run.workload.global_batch) == (16, 16, 128)
    open_ = read("run.sh", start.replace("=16", "=$(expr $N \\* 4)"))
    assert (open_.hardware.devices, open_.plan) == (None, None)
    assert read("run.sh", start.replace("=16", "=1").replace(ranks, "")).hardware.devices == 1


def test_one_visible_gpu_is_the_device(read):
    run = read("run.sh", f'WANDB_PROJECT="x" CUDA_VISIBLE_DEVICES="0" python3 train.py {ARGUMENTS}\n')
    assert run.hardware.devices == 1
    assert not any("one process" in note for note in run.notes)


def test_one_process_on_several_gpus_is_refused(read):
    with pytest.raises(ConfigError, match="one process on 4 GPUs") as caught:
        read("run.sh", f"export CUDA_VISIBLE_DEVICES=0,1,2,3\npython train.py {ARGUMENTS}\n")
    assert caught.value.hint == "start it under torchrun --nproc_per_node 4"


@pytest.mark.parametrize(
    ("before", "after"),
    [("export XLA_USE_SPMD=1", ""), ("source env.sh  # PJRT_DEVICE=TPU", ""), ("", "--spmd_2d_sharding 4")],
)
def test_tpus_under_pytorch_are_refused(read, before, after):
    with pytest.raises(ConfigError, match="PyTorch/XLA"):
        read("run.sh", f"{before}\npython3 run_clm.py {ARGUMENTS} {after}\n")


def test_hardware_that_is_said_is_what_counts(read):
    run = read("run.sh", f"srun python train.py {ARGUMENTS}\n", hardware="h100-8")
    assert (run.hardware.devices, run.workload.global_batch) == (8, 64)
    assert not any("one process" in note for note in run.notes), "srun starts several"
    alone = read("run.sh", f"python train.py {ARGUMENTS}\n", hardware="h100-8")
    assert any(note.startswith("python starts one process; the plan is for 8 devices") for note in alone.notes)


@pytest.mark.parametrize("start", ["torchrun --nproc_per_node 8", "deepspeed --num_gpus 8"])
def test_the_trainer_recomputes_nothing_unless_told(read, tmp_path, start):
    (tmp_path / "ds.json").write_text('{"zero_optimization": {"stage": 2}, "bf16": {"enabled": "auto"}}')
    deepspeed = "--deepspeed ds.json" if "deepspeed" in start else ""
    run = read("run.sh", f"{start} train.py {ARGUMENTS} {deepspeed}\n", hardware="h100-8")
    assert run.plan.remat is Remat.NONE
    assert any("gradient_checkpointing" in note and "taken as" in note for note in run.notes)


@pytest.mark.parametrize(
    ("program", "more"),
    [
        ("run_sft.py", ""),
        ("train.py", "--packing True"),
        ("train.py", "--grad_checkpoint True"),
        ("train.py", "--use_gradient_checkpointing True"),
    ],
)
def test_what_may_recompute_by_itself_is_asked(read, program, more):
    run = read("run.sh", f"torchrun --nproc_per_node 8 {program} {ARGUMENTS} {more}\n", hardware="h100-8")
    assert not any(OFF in note for note in run.notes)


def test_a_program_without_the_trainer_is_asked(read):
    said = ARGUMENTS.replace(" --save_strategy epoch", "")
    run = read("run.sh", f"torchrun --nproc_per_node 8 train.py {said}\n", hardware="h100-8")
    assert run.plan.remat is None


def test_a_model_that_is_left_empty_is_asked(read):
    said = ARGUMENTS.replace("Qwen/Qwen3-8B", "${MODEL}")
    run = read("run.sh", f"MODEL=''\ntorchrun --nproc_per_node 8 train.py {said}\n")
    assert run.model is None
    assert any(note.startswith("the model is not said") for note in run.notes)


@pytest.mark.parametrize("program", ["run_clm_flax.py", "tf_train.py", "train_mlx.py"])
def test_another_framework_is_told_by_its_name(read, program):
    with pytest.raises(ConfigError, match="another framework than PyTorch"):
        read("run.sh", f"python {program} {ARGUMENTS}\n")


def test_a_program_that_trains_and_then_evaluates_trains(read):
    start = "python train_and_evaluate.py --model_name_or_path Qwen/Qwen3-8B --bf16 --per_device_train_batch_size 1"
    assert read("run.sh", f"{start} --output_dir x\n", hardware="h100-1").plan is not None
