"""LLaMA-Factory's YAML with the DeepSpeed configuration that it names."""

import json

import pytest

from asap.core.errors import ConfigError
from asap.experiments.files.yaml_text import parse_yaml
from asap.plans import Plan
from asap.stacks.launchers import launch_lines
from tests.experiments.stack_configurations import read

__all__ = ["read"]

TUNING = """
model_name_or_path: meta-llama/Llama-3.1-8B
stage: sft
do_train: true
finetuning_type: full
deepspeed: examples/deepspeed/ds_z3_config.json
cutoff_len: 4096
per_device_train_batch_size: 1
gradient_accumulation_steps: 2
bf16: true
resume_from_checkpoint: null
"""
STAGE_3 = {
    "train_micro_batch_size_per_gpu": "auto", "gradient_accumulation_steps": "auto", "bf16": {"enabled": "auto"},
    "zero_optimization": {"stage": 3},
}  # fmt: skip


@pytest.fixture
def configured(tmp_path):
    (tmp_path / "ds_z3_config.json").write_text(json.dumps(STAGE_3))


def test_a_run_that_trains_all_parameters(read, configured):
    run = read("full.yaml", TUNING, hardware="h100-8")
    assert str(run.plan) == "data=8 microbatches=2 remat=full"
    assert (run.model.layers, run.workload.global_batch, run.workload.sequence_length) == (32, 16, 4096)
    assert (run.workload.precision, run.workload.zero_stage, run.workload.framework) == ("bf16", 3, "DeepSpeed")
    assert any("cutoff_len" in note for note in run.notes)
    line = launch_lines(
        Plan.parse("data=8 microbatches=1 remat=none"), "deepspeed", run.hyperparameters, global_batch=16
    )
    assert parse_yaml(line, "line")[0] == {
        "gradient_accumulation_steps": 1, "per_device_train_batch_size": 2, "disable_gradient_checkpointing": True,
    }  # fmt: skip


@pytest.mark.parametrize(
    ("more", "devices"), [("", 6), ("resources_per_worker: {GPU: 2}\n", 12), ("resources_per_worker: {CPU: 2}\n", 6)]
)
def test_workers_of_ray_are_the_devices(read, configured, more, devices):
    run = read("sft.yaml", f"{TUNING}ray_num_workers: 6\n{more}")
    assert (run.hardware.devices, run.workload.global_batch) == (devices, 2 * devices)


def test_what_deepspeed_decides_stands_apart_from_the_lines_of_the_yaml(read, configured):
    run = read("full.yaml", TUNING, hardware="h100-8")
    plan = Plan.parse("replica=8 microbatches=1 remat=full offload=optimizer")
    line = launch_lines(plan, "deepspeed", run.hyperparameters, global_batch=16)
    assert line.splitlines() == [
        "gradient_accumulation_steps: 1",
        "per_device_train_batch_size: 2",
        "# in the DeepSpeed configuration that it names:",
        '{"zero_optimization": {"stage": 2, "offload_optimizer": {"device": "cpu"}}}',
    ]


def test_overrides_are_arguments_or_deepspeeds_settings(read, configured):
    said = ["disable_gradient_checkpointing=true", "zero_optimization.stage=2", "gradient_accumulation_steps=4"]
    run = read("full.yaml", TUNING + "packing: true\nfp8: true\n", *said, hardware="h100-8")
    assert str(run.plan) == "replica=8 microbatches=4 remat=none"
    assert (run.workload.global_batch, run.workload.precision, run.notes) == (32, "fp8", ())


@pytest.mark.parametrize(
    ("before", "after", "said"),
    [
        ("finetuning_type: full", "finetuning_type: lora", "finetuning_type=lora: training a part"),
        ("finetuning_type: full", "lora_rank: 8", "finetuning_type=lora: training a part"),
        ("stage: sft", "stage: dpo", "stage must be one of pt, sft"),
        ("stage: sft", "stage: sft\nuse_asft_loss: true", "use_asft_loss is an argument of training on preferences"),
        ("deepspeed: examples", "other: examples", "names no DeepSpeed configuration"),
        ("ds_z3_config", "own_config", "which is not there"),
        ("cutoff_len: 4096", "cutoff_len: long", "cutoff_len must be a whole number"),
    ],
)
def test_what_is_not_modelled_or_not_there_is_refused(read, configured, before, after, said):
    with pytest.raises(ConfigError, match=said):
        read("tune.yaml", TUNING.replace(before, after), hardware="h100-8")


def test_a_file_that_shares_a_key_with_maxtext_is_not_taken_for_its(read):
    with pytest.raises(ConfigError, match="is no MaxText configuration"):
        read("train.yaml", "model: x\nkernel_config: auto\ntrain_dataset: d\nlearning_rate: 1\n")


OPTIONS = """
export CUDA_VISIBLE_DEVICES=0,1,2,3
llamafactory-cli train --stage sft --do_train --model_name_or_path meta-llama/Llama-3.1-8B --finetuning_type full \\
    --cutoff_len 4096 --per_device_train_batch_size 1 --gradient_accumulation_steps 2 --bf16
"""


def test_options_without_a_yaml(read, configured):
    run = read("run.sh", OPTIONS)
    assert str(run.plan) == "replica=4 microbatches=2 remat=full"
    assert (run.workload.global_batch, run.workload.sequence_length, run.workload.precision) == (8, 4096, "bf16")
    line = launch_lines(
        Plan.parse("data=4 microbatches=1 remat=none"), "accelerate", run.hyperparameters, global_batch=8
    )
    assert line.splitlines()[1:] == [
        '--per_device_train_batch_size 2 --gradient_accumulation_steps 1 --fsdp "full_shard auto_wrap"'
        " --disable_gradient_checkpointing true"
    ]
    several = read("run.sh", OPTIONS.replace("llamafactory-cli", "NPROC_PER_NODE=8 NNODES=2 llamafactory-cli"))
    assert str(several.plan.ici.replica) == "16"
    with_deepspeed = read("run.sh", OPTIONS.replace("--bf16", "--bf16 --deepspeed ds_z3_config.json"))
    assert str(with_deepspeed.plan) == "data=4 microbatches=2 remat=full"


def test_a_yaml_that_names_no_deepspeed_is_read_with_what_starts_it(read, tmp_path):
    (tmp_path / "full.yaml").write_text(TUNING.replace("deepspeed: examples/deepspeed/ds_z3_config.json\n", ""))
    for start in (
        "NPROC_PER_NODE=8 llamafactory-cli train full.yaml",
        "torchrun --nproc_per_node 8 train.py full.yaml",
    ):
        run = read("run.sh", f"{start}\n")
        assert str(run.plan) == "replica=8 microbatches=2 remat=full"
        line = launch_lines(Plan.parse("data=8 microbatches=2 remat=none"), "accelerate", run.hyperparameters)
        assert parse_yaml(line, "line")[0] == {"fsdp": "full_shard auto_wrap", "disable_gradient_checkpointing": True}
    launch = "distributed_type: FSDP\nmixed_precision: bf16\nnum_processes: 8\nfsdp_config: {fsdp_version: 2}\n"
    (tmp_path / "fsdp.yaml").write_text(launch)
    sharded = read("run.sh", "accelerate launch --config_file fsdp.yaml src/train.py full.yaml\n")
    assert str(sharded.plan) == "data=8 microbatches=2 remat=full"


def test_a_yaml_with_the_trainers_fsdp_is_read_alone(read):
    alone = TUNING.replace("deepspeed: examples/deepspeed/ds_z3_config.json", "fsdp: [full_shard, auto_wrap]")
    run = read("full.yaml", alone, hardware="h100-8")
    assert (str(run.plan), run.workload.zero_stage) == ("data=8 microbatches=2 remat=full", 3)


def test_settings_of_the_command_are_laid_over_the_yaml_under_accelerate(read, tmp_path):
    (tmp_path / "full.yaml").write_text(TUNING.replace("deepspeed: examples/deepspeed/ds_z3_config.json\n", ""))
    start = "accelerate launch --multi_gpu --num_processes 4 src/train.py full.yaml"
    run = read("run.sh", f"{start} per_device_train_batch_size=4 gradient_accumulation_steps=1 cutoff_len=512\n")
    assert (run.workload.global_batch, run.workload.sequence_length) == (16, 512)
    assert not any("not read" in note for note in run.notes)
    (tmp_path / "grpo.yaml").write_text("stage: grpo\ndo_train: true\nfinetuning_type: full\n")
    with pytest.raises(ConfigError, match="stage must be one of pt, sft"):
        read("run.sh", f"{start.replace('full', 'grpo')} model_name_or_path=Qwen/Qwen3-8B\n")
    unknown = read("run.sh", f"{start} per_device_train_batch_size=$(cat batch)\n")
    assert unknown.workload.global_batch is None
    assert any(note.endswith("is not said: per_device_train_batch_size") for note in unknown.notes)


@pytest.mark.parametrize(
    ("start", "said"),
    [
        ("USE_MCA=1 llamafactory-cli train full.yaml", "sets USE_MCA: LLaMA-Factory trains by Megatron"),
        ("llamafactory-cli train full.yaml --pipeline_model_parallel_size 4", "pipeline_model_parallel_size is an arg"),
        ("llamafactory-cli train full.yaml --mixture_of_depths convert", "mixture_of_depths: layers that skip tokens"),
        ("accelerate launch --multi_gpu train.py --finetuning_type full --stage cls", "stage must be one of pt, sft"),
    ],
)
def test_what_changes_the_backend_the_model_or_the_method_is_refused(read, tmp_path, configured, start, said):
    (tmp_path / "full.yaml").write_text(TUNING)
    with pytest.raises(ConfigError, match=said):
        read("run.sh", f"{start}\n", hardware="h100-8")


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ("--use_galore true", "use_galore: its optimizer keeps another state"),
        ("--finetuning_type lora", "training a part"),
        ("--stage dpo", "stage must be one of pt, sft"),
    ],
)
def test_options_of_what_is_not_modelled_are_refused(read, more, said):
    with pytest.raises(ConfigError, match=said):
        read("run.sh", OPTIONS.replace("--bf16", f"--bf16 {more}"))


ARGUMENTS = """
model_name_or_path: meta-llama/Llama-3.1-8B
per_device_train_batch_size: 2
gradient_accumulation_steps: 4
bf16: true
gradient_checkpointing: true
max_seq_length: 4096
"""


def test_a_program_with_all_its_arguments_in_a_yaml(read, tmp_path, configured):
    (tmp_path / "sft.yaml").write_text(ARGUMENTS)
    run = read("run.sh", "torchrun --nnodes 2 --nproc_per_node 8 scripts/train.py configs/sft.yaml\n")
    assert str(run.plan) == "replica=16 microbatches=4 remat=full"
    assert (run.workload.global_batch, run.workload.framework) == (128, "Accelerate DDP")
    (tmp_path / "sft.yaml").write_text(f"{ARGUMENTS}fsdp: full_shard auto_wrap\n")
    assert str(read("run.sh", "torchrun --nproc_per_node 8 -m my.train sft.yaml\n").plan).startswith("data=8")
    (tmp_path / "sft.yaml").write_text(f"{ARGUMENTS}deepspeed: ds_z3_config.json\n")
    zero = read("run.sh", "deepspeed --num_gpus 4 train.py sft.yaml\n")
    assert (str(zero.plan), zero.workload.zero_stage) == ("data=4 microbatches=4 remat=full", 3)
    with pytest.raises(ConfigError, match="trains by another method"):
        read("run.sh", "torchrun --nproc_per_node 8 grpo.py sft.yaml\n")


def test_replicas_under_torchrun_are_changed_by_the_trainers_option(read):
    options = "--model_name_or_path meta-llama/Llama-3.1-8B --per_device_train_batch_size 2 --bf16"
    run = read("run.sh", f"torchrun --nproc_per_node 8 train.py {options}\n")
    line = launch_lines(Plan.parse("data=8 microbatches=1"), "accelerate", run.hyperparameters, global_batch=16)
    assert line.splitlines()[1:] == ['--fsdp "full_shard auto_wrap"']


@pytest.mark.parametrize("said", ["beta: 0.1", "loss_type: sigmoid", "tensor_parallel_size: 2"])
def test_arguments_of_other_methods_in_a_yaml_with_deepspeed_are_refused(read, configured, said):
    named = "deepspeed: ds_z3_config.json\n"
    assert read("sft.yaml", f"{ARGUMENTS}{named}", hardware="h100-8").plan is not None
    with pytest.raises(ConfigError, match="is an argument of"):
        read("dpo.yaml", f"{ARGUMENTS}{named}{said}\n", hardware="h100-8")


def test_one_of_several_runs_of_a_script_is_said(read, tmp_path, configured):
    (tmp_path / "full.yaml").write_text(TUNING)
    several = "llamafactory-cli train full.yaml --cutoff_len 512\nllamafactory-cli train full.yaml\n"
    run = read("run.sh", several, hardware="h100-8")
    assert run.workload.sequence_length == 512
    assert "run.sh starts 2 runs; the one of line 1 is read" in run.notes
    options = "--model_name_or_path meta-llama/Llama-3.1-8B --per_device_train_batch_size 2 --bf16"
    start = f"torchrun --nproc_per_node 8 train.py {options}\n"
    assert "run.sh starts 2 runs; the one of line 2 is read" in read("run.sh", f"set -e\n{start}{start}").notes
    zero = start.replace("--bf16", "--bf16 --deepspeed ds_z3_config.json")
    assert "run.sh starts 3 runs; the one of line 1 is read" in read("run.sh", zero * 3).notes


@pytest.mark.parametrize(
    ("program", "more", "said"),
    [
        ("-m run-instruction-lora-multipack", "", "run-instruction-lora-multipack, which by its name trains another"),
        ("-m train", "--rank 128", "rank=128: training a part"),
        ("-m run_t5_multipack", "", "run_t5_multipack, which by its name trains another model"),
        ("train.py", "--max_source_length 512", "max_source_length is an argument of training an encoder"),
    ],
)
def test_adapters_and_encoders_are_told_by_what_the_command_says(read, program, more, said):
    options = "--model_name_or_path meta-llama/Llama-3.1-8B --per_device_train_batch_size 2 --bf16"
    with pytest.raises(ConfigError, match=said):
        read("run.sh", f"torchrun --nproc_per_node 8 {program} {options} {more}\n")
