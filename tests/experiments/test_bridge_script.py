"""Scripts that start a recipe of Megatron-Bridge."""

import pytest

from asap.core.errors import ConfigError
from asap.plans import Plan
from asap.stacks.launchers import launch_lines
from tests.experiments.stack_configurations import read

__all__ = ["read"]

START = """
worker_command=$(cat <<- EOM
  numactl nice -10 \\
  python scripts/performance/run_script.py \\
    --gpu gb200 --model_recipe_name llama3_8b --num_gpus 8 \\
    --compute_dtype fp8_cs --seq_length 8192 \\
    --global_batch_size 128 --micro_batch_size 2 \\
    --tensor_model_parallel_size 2 --pipeline_model_parallel_size 1 --context_parallel_size 1 \\
    --virtual_pipeline_model_parallel_size None --use_megatron_fsdp 0
EOM
)
torchrun --nproc-per-node="4" --nnodes="2" --no-python bash worker_command.sh
"""


def test_what_the_command_says_is_read_and_the_rest_left_to_the_recipe(read):
    run = read("launch.sh", START)
    assert (run.model.layers, run.hardware.chip, run.hardware.devices) == (32, "gb200", 8)
    assert (run.workload.global_batch, run.workload.sequence_length, run.workload.precision) == (128, 8192, "fp8")
    assert str(run.plan) == "replica=4 model=2 microbatches=16"
    assert (run.workload.sequence_parallel, run.workload.framework) == (None, "Megatron-Bridge")
    assert any("add use_distributed_optimizer=true" in note for note in run.notes)
    assert run.workload.optimizer is None
    assert any("add optimizer=" in note for note in run.notes)
    sharing = read("launch.sh", START, "use_distributed_optimizer=true", "optimizer=adam")
    assert (sharing.workload.zero_stage, sharing.notes) == (1, ())
    line = launch_lines(Plan.parse("replica=8 microbatches=8"), "bridge", run.hyperparameters, global_batch=128)
    assert "--tensor_model_parallel_size 1" in line.split(" model.")[0]
    assert "model.tensor_model_parallel_size" not in line


def test_a_line_holds_for_recipes_of_either_form_and_keeps_the_batch(read):
    run = read("launch.sh", START.replace("--global_batch_size 128", ""), "recompute_granularity=none")
    plan = Plan.parse("replica=8 microbatches=8 remat=full")
    words = launch_lines(plan, "bridge", run.hyperparameters, global_batch=128).split()
    assert "++model.recompute_granularity=full" in words
    assert words[words.index("--global_batch_size") + 1] == "128"
    said = read("launch.sh", START, "recompute_granularity=none")
    assert "--global_batch_size" not in launch_lines(plan, "bridge", said.hyperparameters, global_batch=128)


def test_a_plan_that_hangs_on_the_recipe_is_unknown_until_it_is_said(read):
    silent = START.replace(" --use_megatron_fsdp 0", "")
    run = read("launch.sh", silent)
    assert run.plan is None
    assert any("it hangs on use_megatron_fsdp; add them as key=value" in note for note in run.notes)
    assert str(read("launch.sh", silent, "use_megatron_fsdp=true").plan) == "data=4 model=2 microbatches=16"
    mixture = silent.replace("llama3_8b", "qwen3_30b_a3b")
    assert any("expert_model_parallel_size, use_megatron_fsdp" in note for note in read("launch.sh", mixture).notes)


def test_a_recipe_whose_model_is_not_in_the_catalogue_asks_for_its_shapes(read):
    run = read("launch.sh", START.replace("llama3_8b", "novel_9b"))
    assert any("novel_9b is not in the catalogue: add model=NAME of one that is" in note for note in run.notes)
    said = read("launch.sh", START.replace("llama3_8b", "novel_9b"), "model.layers=12", "model.d_model=512")
    assert (said.model.layers, said.model.d_model) == (12, 512)
    assert not any("catalogue" in note for note in said.notes)


@pytest.mark.parametrize(
    ("recipe", "layers"),
    [("llama31_405b_pretrain_config", 126), ("gpt_oss --model_size 120b", 36), ("qwen25_7b", 28), ("deepseek_v3", 61)],
)
def test_the_model_of_a_recipe_is_in_its_name(read, recipe, layers):
    assert read("launch.sh", START.replace("llama3_8b", recipe)).model.layers == layers


@pytest.mark.parametrize("recipe", ["llama3_8b --task lora", "llama3_8b_peft_config"])
def test_a_recipe_of_adapters_is_refused(read, recipe):
    with pytest.raises(ConfigError, match="training a part of the parameters"):
        read("launch.sh", START.replace("llama3_8b", recipe))


def test_a_script_that_starts_another_names_it(read, tmp_path):
    (tmp_path / "launch.sh").write_text(START)
    with pytest.raises(ConfigError, match=r"give launch\.sh, which it names"):
        read("sbatch.sh", "srun --container-workdir=/recipe bash -c 'export A=1; ./launch.sh'")
