"""Scripts that start a recipe of Megatron-Bridge by its name."""

import pytest

from asap.core.errors import ConfigError
from asap.plans import Plan
from asap.stacks.launchers import launch_lines
from tests.experiments.stack_configurations import read

__all__ = ["read"]

START = """#!/bin/bash
TP=2
CMD="python scripts/training/run_recipe.py --recipe llama3_70b_pretrain_config"
CMD="$CMD -mb 2 model.tensor_model_parallel_size=$TP train.global_batch_size=64 logger.log_interval=1"
srun torchrun --nnodes=4 --nproc_per_node=8 --no-python bash -c "$CMD model.context_parallel_size=1"
"""


def test_a_recipe_with_the_settings_of_its_command(read):
    run = read("run.sh", START)
    assert (run.model.layers, run.hardware.devices, run.workload.global_batch) == (80, 32, 64)
    assert str(run.plan) == "replica=4 model=2 stage=4 microbatches=8 pipeline_repeats=5 remat=none"
    assert any("is that of Megatron-Bridge 0.2 to 0.6" in note for note in run.notes)
    of_model = START.replace("--recipe llama3_70b_pretrain_config", "--model llama32_1b --mode sft")
    assert read("run.sh", of_model).model.layers == 16


def test_what_a_variable_decides_is_asked_for(read):
    run = read("run.sh", START.replace("TP=2", "TP=$1"))
    assert run.plan is None
    assert any("hangs on tensor_model_parallel_size" in note for note in run.notes)
    assert read("run.sh", START.replace("TP=2", "TP=$1"), "tensor_model_parallel_size=4").plan.degree("model") == 4


@pytest.mark.parametrize("scheme", ["--mode lora", "--peft_scheme dora"])
def test_adapters_are_refused(read, scheme):
    with pytest.raises(ConfigError, match="trains adapters"):
        read("run.sh", START.replace("--recipe", f"{scheme} --recipe"))


def test_yaml_that_names_the_recipe_it_is_laid_over(read):
    target = "megatron.bridge.recipes.llama.llama3.llama3_70b_pretrain_config"
    text = f"recipe: {{_target_: {target}, seq_length: 4096}}\ntrain: {{global_batch_size: 64, micro_batch_size: 1}}\n"
    text += "model: {pipeline_model_parallel_size: 2, recompute_granularity: '${oc.env:R}'}\n"
    run = read("run.yaml", text, "model.context_parallel_size=1", hardware="h100-16")
    assert (str(run.plan), run.plan.remat) == ("replica=2 model=4 stage=2 microbatches=32 pipeline_repeats=5", None)
    assert run.workload.sequence_length == 4096
    with pytest.raises(ConfigError, match="only decoders"):
        read("run.yaml", text.replace("llama3_70b_pretrain", "nemotron_3_nano_sft"))


def test_plans_are_written_back_as_overrides(read):
    run = read("run.sh", START)
    plan = Plan.parse("replica=4 model=8 microbatches=8 remat=none")
    words = launch_lines(plan, "bridge", run.hyperparameters, global_batch=64, layers=80).split()
    assert {"++model.tensor_model_parallel_size=8", "++model.pipeline_model_parallel_size=1"} <= {*words}
