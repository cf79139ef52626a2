"""DeepSpeed: its JSON beside a model, scripts that start it, and Megatron-DeepSpeed."""

import json
import shlex

import pytest

from asap.core.errors import PlanError
from asap.optimize.evaluators.run.command import words
from asap.optimize.evaluators.run.settings import asked_settings
from asap.plans import Plan
from asap.proposals.proposal import Overrides
from asap.stacks.launchers import launch_lines
from tests.experiments.stack_configurations import (
    DEEPSPEED,
    read,
)

__all__ = ["read"]


CHAT = """
ZERO=$1
if [ "$ZERO" == "" ]; then ZERO=3; fi
deepspeed --num_gpus 8 main.py --model_name_or_path meta-llama/Llama-2-7b-hf --per_device_train_batch_size 4 \\
  --max_seq_len 512 --gradient_accumulation_steps 2 --gradient_checkpointing --zero_stage $ZERO --deepspeed
"""
TRAINER = """
DS=/tmp/ds.json
cat <<EOT > $DS
{"train_micro_batch_size_per_gpu": "auto", "zero_optimization": {"stage": ${STAGE:-2}}, "bf16": {"enabled": true}}
EOT
torchrun --nproc_per_node 8 train.py --deepspeed $DS --per_device_train_batch_size 2 --model_name_or_path llama3.1-8b
"""


def test_deepspeed_chat_is_told_by_its_own_arguments(read):
    run = read("run.sh", CHAT)

    def line(plan: str) -> str:
        return launch_lines(Plan.parse(plan), "deepspeed", run.hyperparameters, global_batch=64)

    assert line(str(run.plan)) == ""
    changed = line("replica=8 microbatches=1 remat=none")
    assert changed == (
        "--zero_stage 2 --per_device_train_batch_size 8 --gradient_accumulation_steps 1"
        "  # without --gradient_checkpointing"
    )
    assert asked_settings(Overrides(deepspeed=changed))["zero_stage"] == "2"
    assert words(Overrides(deepspeed=changed)) == changed.partition("  #")[0]
    assert line("data=8 microbatches=2 remat=full offload=optimizer+parameters") == "--offload"
    with pytest.raises(PlanError, match="offloads parameters and optimizer together"):
        line("data=8 microbatches=2 offload=optimizer")
    with pytest.raises(PlanError, match="no argument for"):
        line("replica=4 model=2")
    second = read("run.sh", CHAT.replace("ZERO=3", "ZERO=2").replace("--deepspeed\n", "--deepspeed --offload\n"))
    assert str(second.plan) == "replica=8 microbatches=2 remat=full offload=optimizer"
    assert (
        launch_lines(
            Plan.parse("replica=8 microbatches=2 remat=full"), "deepspeed", second.hyperparameters, global_batch=64
        )
        == "# without --offload"
    )
    with pytest.raises(PlanError, match="under ZeRO stage 3 only"):
        launch_lines(Plan.parse("replica=8 offload=optimizer+parameters"), "deepspeed", second.hyperparameters)
    silent = read("run.sh", CHAT.replace("--gradient_checkpointing", "").replace("--per_device_train_batch_size 4", ""))
    assert (str(silent.plan), silent.workload.global_batch) == ("data=8 microbatches=2 remat=none", 256)


def test_what_hugging_faces_trainer_decides_is_written_in_its_words(read):
    script = TRAINER.replace("--model_name", "--gradient_checkpointing True --model_name")
    run = read("run.sh", script, hardware="h100-16")
    assert "remat=full" in str(run.plan)
    assert not any("gradient_checkpointing" in note for note in run.notes)
    other = Plan.parse("replica=16 microbatches=2 remat=none")
    arguments = "--per_device_train_batch_size 1 --gradient_accumulation_steps 2 --gradient_checkpointing false"
    line = launch_lines(other, "deepspeed", run.hyperparameters, global_batch=32)
    assert line == arguments
    settings = {"per_device_train_batch_size": "1", "gradient_accumulation_steps": "2"}
    assert asked_settings(Overrides(deepspeed=line)) == settings | {"gradient_checkpointing": "false"}
    moved = launch_lines(
        Plan.parse("data=16 microbatches=2 remat=full"), "deepspeed", run.hyperparameters, global_batch=32
    )
    options, heading, configuration = moved.split("\n")
    assert options == "--per_device_train_batch_size 1 --gradient_accumulation_steps 2"
    assert heading == "# in the DeepSpeed configuration that it names:"
    assert json.loads(configuration) == {"zero_optimization": {"stage": 3}}
    assert asked_settings(Overrides(deepspeed=moved)) == settings | {"zero_optimization.stage": "3"}
    assert shlex.split(words(Overrides(deepspeed=moved))) == [moved]
    assert launch_lines(run.plan, "deepspeed", run.hyperparameters, global_batch=32) == "{}"
    minimal = Plan.parse("replica=16 microbatches=2 remat=minimal")
    with pytest.raises(PlanError, match="remat=minimal"):
        launch_lines(minimal, "deepspeed", run.hyperparameters, global_batch=32)


def test_a_number_is_written_where_the_configuration_has_one_and_as_an_argument_where_it_says_auto(read):
    left = {"train_micro_batch_size_per_gpu": "auto", "train_batch_size": "auto", "gradient_accumulation_steps": 1}
    run = read("ds.json", json.dumps(DEEPSPEED | left), "model=llama3.1-8b", hardware="h100-16")
    plan = Plan.parse("data=16 microbatches=2 offload=optimizer")
    line = launch_lines(plan, "deepspeed", run.hyperparameters, global_batch=64)
    assert line.split("\n") == [
        "TrainingArguments(per_device_train_batch_size=2, gradient_accumulation_steps=2)",
        "# in the DeepSpeed configuration that it names:",
        '{"gradient_accumulation_steps": 2}',
    ]
    settings = {"per_device_train_batch_size": "2", "gradient_accumulation_steps": "2"}
    assert asked_settings(Overrides(deepspeed=line)) == settings
    silent = read("ds.json", json.dumps(DEEPSPEED | {"gradient_accumulation_steps": "auto"}), hardware="h100-16")
    assert (silent.plan.microbatches, silent.workload.global_batch) == (None, None)
