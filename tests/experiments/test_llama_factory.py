"""LLaMA-Factory's YAML with the DeepSpeed configuration that it names."""

import json

import pytest

from asap.core.errors import ConfigError
from asap.experiments.yaml_text import parse_yaml
from asap.plans import Plan
from asap.plans.launchers import launch_lines
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
        ("deepspeed: examples", "other: examples", "names no DeepSpeed configuration"),
        ("ds_z3_config", "ds_z2_config", "which is not there"),
        ("cutoff_len: 4096", "cutoff_len: long", "cutoff_len must be a whole number"),
    ],
)
def test_what_is_not_modelled_or_not_there_is_refused(read, configured, before, after, said):
    with pytest.raises(ConfigError, match=said):
        read("tune.yaml", TUNING.replace(before, after), hardware="h100-8")


def test_a_file_that_shares_a_key_with_maxtext_is_not_taken_for_its(read):
    with pytest.raises(ConfigError, match="is no MaxText configuration"):
        read("train.yaml", "model: x\nkernel_config: auto\ntrain_dataset: d\nlearning_rate: 1\n")
