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
from asap.stacks.reading import field_of
from asap.stacks.trainer import arguments as numerics
from tests.cases import cases, kept
from tests.experiments.stack_configurations import DEEPSPEED

TRAINER = kept(__file__)["TRAINER"]


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
    assert asked_settings(Overrides(stack="deepspeed", text=line)) == settings | {"gradient_checkpointing": "false"}
    moved = launch_lines(
        Plan.parse("data=16 microbatches=2 remat=full"), "deepspeed", run.hyperparameters, global_batch=32
    )
    options, heading, configuration = moved.split("\n")
    assert options == "--per_device_train_batch_size 1 --gradient_accumulation_steps 2"
    assert heading == "# in the DeepSpeed configuration that it names:"
    assert json.loads(configuration) == {"zero_optimization": {"stage": 3}}
    assert asked_settings(Overrides(stack="deepspeed", text=moved)) == settings | {"zero_optimization.stage": "3"}
    assert shlex.split(words(Overrides(stack="deepspeed", text=moved))) == [moved]
    assert launch_lines(run.plan, "deepspeed", run.hyperparameters, global_batch=32) == "{}"
    minimal = Plan.parse("replica=16 microbatches=2 remat=minimal")
    with pytest.raises(PlanError, match="remat=minimal"):
        launch_lines(minimal, "deepspeed", run.hyperparameters, global_batch=32)


@cases("said, assumed")
def test_a_default_of_recomputation_that_is_assumed_is_said(read, said, assumed):
    deepspeed = "deepspeed: {zero_optimization: {stage: 3}}"
    text = f"model_name_or_path: a/llama3.1-8b\nper_device_train_batch_size: 2\n{deepspeed}\n{said}\n"
    run = read("train.yaml", text, "model=llama3.1-8b", hardware="h100-8")
    expected = [f"not said, and taken as the program has it today: {assumed}"] if assumed else []
    assert [note for note in run.notes if note.startswith("not said")] == expected


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
    assert asked_settings(Overrides(stack="deepspeed", text=line)) == settings
    silent = read("ds.json", json.dumps(DEEPSPEED | {"gradient_accumulation_steps": "auto"}), hardware="h100-16")
    assert (silent.plan.microbatches, silent.workload.global_batch) == (None, None)


@cases("said, kernel")
def test_the_kernel_of_attention(said, kernel):
    assert field_of(numerics.TRAINER, "attention", said) == kernel


@pytest.mark.parametrize(("value", "loaded"), [("bfloat16", True), ("torch.bfloat16", True), ("float32", False)])
def test_the_type_that_weights_load_in(value, loaded):
    assert numerics.loaded_in_bf16({"torch_dtype": value}) is loaded
