"""DeepSpeed: its JSON beside a model, scripts that start it, and Megatron-DeepSpeed."""

import json
import shlex

import pytest

from asap.core.errors import ConfigError, PlanError
from asap.optimize.evaluators.run.command import words
from asap.optimize.evaluators.run.settings import asked_settings
from asap.plans import Plan
from asap.proposals.proposal import Overrides
from asap.stacks.launchers import launch_lines
from tests.experiments.stack_configurations import (
    DEEPSPEED,
    HUGGING_FACE,
    LLAMA3_8B,
    MEGATRON,
    read,
    size,
)

__all__ = ["read"]


def test_deepspeed_with_a_model_beside_it(read, tmp_path):
    (tmp_path / "config.json").write_text(json.dumps(HUGGING_FACE))
    run = read("ds_config.json", json.dumps(DEEPSPEED), hardware="a100-16")
    assert size(run) == pytest.approx(LLAMA3_8B, rel=0.01)
    assert str(run.plan) == "data=16 microbatches=2 offload=optimizer"
    assert (run.workload.global_batch, run.workload.zero_stage, run.workload.precision) == (128, 3, "bf16")


def test_a_deepspeed_file_to_be_tuned(read):
    run = read("ds_config.json", '{"train_micro_batch_size_per_gpu": "auto", "autotuning": {}}', hardware="a100-16")
    assert (str(run.plan), run.workload.global_batch) == ("replica=16", None)
    assert any("the batch is not said" in note for note in run.notes)


def test_deepspeed_without_a_model_says_what_to_give(read):
    run = read("ds_config.json", json.dumps(DEEPSPEED), "model=llama3.1-8b", hardware="a100-16")
    assert size(run) == pytest.approx(LLAMA3_8B, rel=0.01)
    silent = read("ds_config.json", json.dumps(DEEPSPEED), hardware="a100-16")
    assert any("the model is not said: add model=NAME" in note for note in silent.notes)


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


def test_a_script_that_starts_deepspeed(read):
    chat = read("run.sh", CHAT)
    assert (str(chat.plan), chat.workload.global_batch) == ("data=8 microbatches=2 remat=full", 64)
    assert (chat.model and chat.model.layers, chat.workload.sequence_length) == (32, 512)
    assert chat.workload.precision == "fp16"
    offloaded = read("run.sh", CHAT.replace("--zero_stage", "--offload --dtype bf16 --zero_stage"))
    assert (str(offloaded.plan).split()[-1], offloaded.workload.precision) == ("offload=optimizer+parameters", "bf16")
    trainer = read("run.sh", TRAINER, hardware="h100-16")
    assert (str(trainer.plan), trainer.workload.zero_stage, trainer.workload.global_batch) == (
        "replica=16 microbatches=1", 2, 32,
    )  # fmt: skip
    assert trainer.workload.precision == "bf16"


@pytest.mark.parametrize(
    ("said", "name"),
    [
        ("--base_model ./weights/Qwen2.5-7B", "./weights/Qwen2.5-7B"),
        ("--model_path meta-llama/Llama-3.1-8B", "meta-llama/Llama-3.1-8B"),
        ("--pretrained_model_name_or_path /hub/LLM-Research/Llama-3___2-3B", "/hub/LLM-Research/Llama-3.2-3B"),
    ],
)
def test_programs_name_the_model_by_arguments_of_their_own(read, tmp_path, said, name):
    (tmp_path / "ds.json").write_text(json.dumps(DEEPSPEED))
    model = read("run.sh", f"deepspeed --num_gpus 8 finetune.py --deepspeed ds.json {said}\n").model
    assert model.name == name
    assert model.layers is not None


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


@pytest.mark.parametrize(
    ("script", "said"),
    [
        (
            "deepspeed train.py --deepspeed_config there/ds.json",
            r"starts DeepSpeed with there/ds.json, which is not there",
        ),
        ("deepspeed train.py --epochs 3", "without naming its configuration"),
        ("cat <<E > ds.json\n{oops\nE\ndeepspeed train.py --deepspeed ds.json", r"/ds.json:1: is not JSON"),
        (MEGATRON.replace("--bf16", "--bf16 --deepspeed --zero-stage 2"), "refuses with pipeline stages"),
    ],
)
def test_a_script_of_deepspeed_that_is_not_read_says_so(read, script, said):
    with pytest.raises(ConfigError, match=said):
        read("run.sh", script)


def test_megatron_deepspeed_has_arguments_of_its_own(read):
    arguments = "--bf16 --deepspeed --zero-stage 1 --num-key-value-heads 4 --deepspeed-activation-checkpointing"
    run = read("run.sh", MEGATRON.replace("--bf16", arguments).replace("--recompute-granularity full", ""))
    assert run.model is not None
    assert (run.model.kv_heads, run.workload.framework, run.workload.zero_stage) == (4, "Megatron-DeepSpeed", 1)
    assert "remat=full" in str(run.plan)


def test_ulysses_of_deepspeed_is_context_parallelism(read):
    script = MEGATRON.replace("--bf16", "--bf16 --deepspeed --ds-sequence-parallel-size 4")
    run = read("run.sh", script)
    assert (run.plan.degree("seq"), run.workload.context_parallel) == (4, "ulysses")
    wider = Plan.parse("replica=8 seq=8 remat=full")
    assert "--ds-sequence-parallel-size 8" in launch_lines(wider, "megatron", run.hyperparameters)
    unknown = read("run.sh", script.replace("size 4", "size $(cat sp)"))
    assert any("the plan is unknown: it hangs on ds_sequence_parallel_size" in note for note in unknown.notes)

    zero = DEEPSPEED | {"sequence_parallel_size": 4}
    run = read("ds_config.json", json.dumps(zero), "model=llama3.1-8b", hardware="a100-16")
    assert str(run.plan) == "data=4 seq=4 microbatches=2 offload=optimizer"
    assert run.workload.global_batch == 32
    assert '"sequence_parallel_size": 1' in launch_lines(Plan.parse("data=16"), "deepspeed", run.hyperparameters)


@pytest.mark.parametrize(
    ("command", "devices"),
    [
        ("torchrun --nnodes 2 --nproc-per-node 4 train.py", 8),
        ("CUDA_VISIBLE_DEVICES=0,1,2 deepspeed train.py", 3),
        ("deepspeed --include localhost:0,1@second:4,5,6,7 train.py", 6),
        ("deepspeed --num_gpus 4 --num_nodes 2 train.py", 8),
        ("deepspeed --hostfile hosts train.py", None),
        ("torchrun --nnodes 3 --nproc_per_node 2 -m ours.train", 6),
        ("python -m torch.distributed.run --nproc_per_node 5 -m ours.train", 5),
        ("deepspeed --num_gpus 7 --module ours.train", 7),
    ],
)
def test_processes_that_a_launcher_of_deepspeed_starts(read, tmp_path, command, devices):
    (tmp_path / "ds.json").write_text(json.dumps(DEEPSPEED))
    run = read("run.sh", f"{command} --deepspeed ds.json --per_device_train_batch_size 4\n")
    assert run.hardware.devices == devices


def test_a_module_is_told_by_its_name_as_a_file_is(read, tmp_path):
    (tmp_path / "ds.json").write_text(json.dumps(DEEPSPEED))
    with pytest.raises(ConfigError, match=r"ours\.train_dpo, which by its name trains by another method"):
        read("run.sh", "torchrun --nproc_per_node 8 -m ours.train_dpo --deepspeed ds.json\n")
    with pytest.raises(ConfigError):
        read("install.sh", "python -m pip install deepspeed transformers\n")


@pytest.mark.parametrize(
    "said", ["--pipe_parallel_size 4", "--pp 1 --model_parallel_size 2", "--parallel_mode ring_attn"]
)
def test_a_program_that_splits_its_model_itself_is_not_taken_for_replicas(read, tmp_path, said):
    (tmp_path / "ds.json").write_text(json.dumps(DEEPSPEED))
    with pytest.raises(ConfigError, match="splits its model itself"):
        read("run.sh", f"deepspeed --num_gpus 4 train.py {said} --deepspeed_config ds.json\n")
    whole = read("run.sh", "deepspeed --num_gpus 4 train.py --model_parallel_size 1 --deepspeed_config ds.json\n")
    assert str(whole.plan) == "data=4 microbatches=2 offload=optimizer"


@pytest.mark.parametrize("option", ["--ds_config ds.json", "--deepspeed_cfg=ds.json", "--ds_config_path ds.json"])
def test_a_configuration_under_the_name_that_a_program_gives_it(read, tmp_path, option):
    (tmp_path / "ds.json").write_text(json.dumps(DEEPSPEED))
    start = f"deepspeed --num_gpus 8 pretrain.py {option} --n_layers 24 --seq 2048\n"
    run = read("run.sh", start, hardware="a100-8")
    assert (str(run.plan), run.workload.zero_stage) == ("data=8 microbatches=2 offload=optimizer", 3)
    assert any("the model is not said" in note for note in run.notes)
    with pytest.raises(ConfigError, match="pipeline is an argument of a program that splits its model itself"):
        read("run.sh", f"{start.rstrip()} --pipeline\n", hardware="a100-8")
