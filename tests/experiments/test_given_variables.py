"""Overrides that are variables of the script they are given for."""

import pytest

from asap.core.errors import ConfigError, UsageError
from tests.experiments.stack_configurations import read

__all__ = ["read"]

MEGATRON = """#!/bin/bash
PARALLEL=4
STAGES=${STAGES:-1}
MICRO=$(( 16 / PARALLEL ))
torchrun --nproc_per_node 8 pretrain_gpt.py --tensor-model-parallel-size $PARALLEL \\
  --pipeline-model-parallel-size ${STAGES} --num-layers 24 --hidden-size 2048 --num-attention-heads 16 \\
  --seq-length 2048 --max-position-embeddings 2048 --micro-batch-size $MICRO --global-batch-size 64 --bf16 \\
  --vocab-size 50304
"""


def test_a_variable_is_set_where_the_script_assigns_it_and_where_it_has_a_default(read):
    run = read("go.sh", MEGATRON, "PARALLEL=2", "STAGES=2", hardware="h100-8")
    assert (run.plan.degree("model"), run.plan.degree("stage"), run.plan.degree("replica")) == (2, 2, 2)
    assert run.plan.microbatches == 64 // 2 // 8
    assert "set as variables of go.sh: PARALLEL=2, STAGES=2" in run.notes


def test_a_loop_over_a_variable_takes_the_value_that_is_given(read):
    looped = MEGATRON.replace("PARALLEL=4\n", "for PARALLEL in 1 2 4; do\n") + "done\n"
    assert read("go.sh", looped, "PARALLEL=2", hardware="h100-8").plan.degree("model") == 2


def test_a_setting_of_the_stack_is_meant_before_a_variable_of_that_name(read):
    script = f"seq_length=512; echo $seq_length\n{MEGATRON}"
    run = read("go.sh", script, "seq_length=4096", hardware="h100-8")
    assert run.workload.sequence_length == 4096


def test_a_field_of_a_record_is_meant_before_a_variable_of_that_name(read):
    bare = MEGATRON.replace("--num-layers 24 --hidden-size 2048 --num-attention-heads 16", "--use-checkpoint-args")
    run = read("go.sh", f"model=mine; echo training $model\n{bare}", "model=llama3.1-8b", hardware="h100-8")
    assert run.model.d_model == 4096


def test_variables_of_a_sourced_file_are_set(read, tmp_path):
    (tmp_path / "sizes.sh").write_text("export WIDTH=${HIDDEN:-1024}\n")
    sourcing = f"source sizes.sh\n{MEGATRON.replace('--hidden-size 2048', '--hidden-size $WIDTH')}"
    assert read("go.sh", sourcing, "HIDDEN=4096", hardware="h100-8").model.d_model == 4096


def test_variables_of_a_script_of_maxtext_are_set(read):
    script = "BATCH=${BATCH:-4}\npython3 -m MaxText.train MaxText/configs/base.yml model_name=llama2-7b "
    script += "per_device_batch_size=$BATCH max_target_length=2048\n"
    run = read("go.sh", script, "BATCH=2", hardware="v5e-16")
    assert run.workload.global_batch == 32


def test_a_name_that_the_script_does_not_use_is_refused(read):
    with pytest.raises(ConfigError, match=r"unknown key PARALEL .*no variable of a script"):
        read("go.sh", MEGATRON, "PARALEL=2", hardware="h100-8")
    with pytest.raises(UsageError, match="is given twice"):
        read("go.sh", MEGATRON, "PARALLEL=2", "PARALLEL=4", hardware="h100-8")


def test_a_value_is_checked_as_that_of_the_setting(read):
    with pytest.raises(ConfigError, match="tensor_model_parallel_size must be"):
        read("go.sh", MEGATRON, "PARALLEL=two", hardware="h100-8")


TITAN = "torchrun --nproc_per_node 8 -m torchtitan.train --job.config_file ${JOB_FILE}\n"
ZERO = "deepspeed --num_gpus 8 train.py --deepspeed $ZERO --model_name_or_path Qwen/Qwen3-8B --max_length 4096"


def test_a_file_that_a_variable_names_is_asked_for_by_the_variable(read, tmp_path):
    with pytest.raises(ConfigError, match=r"which a variable names \(add JOB_FILE=…"):
        read("go.sh", TITAN, hardware="h100-8")
    (tmp_path / "llama.toml").write_text('[model]\nname = "llama3"\nflavor = "8B"\n[training]\nseq_len = 4096\n')
    assert read("go.sh", TITAN, "JOB_FILE=./llama.toml", hardware="h100-8").model.layers == 32
    with pytest.raises(ConfigError, match=r"starts DeepSpeed with \$ZERO, which a variable names \(add ZERO=…"):
        read("go.sh", ZERO, hardware="h100-8")
    (tmp_path / "two.json").write_text('{"zero_optimization": {"stage": 2}, "train_micro_batch_size_per_gpu": 2}')
    assert read("go.sh", ZERO, "ZERO=two.json", hardware="h100-8").workload.zero_stage == 2
