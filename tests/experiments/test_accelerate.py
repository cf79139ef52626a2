"""Accelerate's configuration with the arguments of a program, in files and in scripts."""

import json

import pytest

from asap.core.errors import PlanError
from asap.optimize.evaluators.run.command import words
from asap.optimize.evaluators.run.settings import asked_settings, settings_document
from asap.plans import Plan
from asap.proposals.proposal import Overrides
from asap.stacks.accelerate.stack import OF_PROGRAM
from asap.stacks.launchers import launch_lines, words_of
from tests.cases import kept

ZERO = kept(__file__)["ZERO"]
ARGUMENTS = (
    "model_name_or_path=meta-llama/Llama-3.1-8B", "per_device_train_batch_size=2", "gradient_accumulation_steps=4",
    "gradient_checkpointing=true", "max_length=4096", "packing=true",
)  # fmt: skip


def test_deepspeed_that_accelerate_says_itself(read):
    run = read("zero3.yaml", ZERO, *ARGUMENTS)
    assert (str(run.plan), run.workload.global_batch) == ("data=8 microbatches=4 remat=full", 64)
    assert (run.workload.framework, run.workload.zero_stage, run.workload.precision) == ("DeepSpeed", 3, "bf16")
    assert words_of("deepspeed", run.hyperparameters) == "accelerate"
    assert launch_lines(
        Plan.parse("replica=8 microbatches=2 remat=none"), "deepspeed", run.hyperparameters, global_batch=64
    ) == (
        "deepspeed_config: {zero_stage: 2}  # its other keys stay\n# arguments of the program that trains:\n"
        "--per_device_train_batch_size 4 --gradient_accumulation_steps 2 --gradient_checkpointing false"
    )
    with pytest.raises(PlanError, match="in a DeepSpeed JSON alone"):
        launch_lines(Plan.parse("replica=4 model=2"), "deepspeed", run.hyperparameters, global_batch=64)


def test_deepspeed_of_a_file_and_sequences_over_processes(read, tmp_path):
    stage = {"zero_optimization": {"stage": 2}, "bf16": {"enabled": True}, "train_micro_batch_size_per_gpu": "auto"}
    (tmp_path / "ds.json").write_text(json.dumps(stage))
    text = "distributed_type: DEEPSPEED\ndeepspeed_config: {deepspeed_config_file: configs/ds.json}\nnum_processes: 8"
    run = read("ds.yaml", text, *ARGUMENTS)
    assert (str(run.plan), run.workload.zero_stage) == ("replica=8 microbatches=4 remat=full", 2)
    assert words_of("deepspeed", run.hyperparameters) == "deepspeed"
    split = read("sp.yaml", f"{ZERO}parallelism_config: {{parallelism_config_sp_size: 4}}", *ARGUMENTS)
    assert str(split.plan) == "data=2 seq=4 microbatches=4 remat=full"


def test_a_try_changes_one_file_or_the_command():
    of_file = Overrides(stack="accelerate", text="fsdp_config: {fsdp_offload_params: true}")
    assert settings_document(of_file) == {"fsdp_config": {"fsdp_offload_params": True}}
    command_options = Overrides(stack="accelerate", text=f"{OF_PROGRAM}\n--gradient_accumulation_steps 2")
    assert (words(command_options), settings_document(command_options)) == (
        "--gradient_accumulation_steps 2",
        {"gradient_accumulation_steps": 2},
    )
    both = Overrides(stack="accelerate", text=f"{of_file.text}\n{command_options.text}")
    assert asked_settings(both) == {"fsdp_config.fsdp_offload_params": "true", "gradient_accumulation_steps": "2"}
    with pytest.raises(PlanError, match="a try changes one file"):
        settings_document(both)
