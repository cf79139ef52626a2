"""Scripts under other names than .sh: of schedulers, other shells, without a suffix."""

import pytest

from asap.core.errors import ConfigError, UnreadError
from tests.experiments.stack_configurations import read

__all__ = ["read"]

START = (
    "torchrun --nproc_per_node 8 train.py --model_name_or_path Qwen/Qwen3-8B --block_size 4096 --do_train"
    " --per_device_train_batch_size {rows} --gradient_checkpointing true"
)


@pytest.mark.parametrize("name", ["run.pbs", "run.zsh", "job.lsf", "run.job"])
def test_a_script_of_another_scheduler_or_shell(read, name):
    assert read(name, START.format(rows=2)).workload.global_batch == 16


@pytest.mark.parametrize("first", ["#!/bin/bash", "#!/usr/bin/env bash", "#!/bin/sh -e"])
def test_a_script_without_a_suffix_is_told_by_its_first_line(read, first):
    assert read("launch", f"{first}\n{START.format(rows=2)}").workload.global_batch == 16


def test_other_files_are_no_scripts(read):
    with pytest.raises(ConfigError, match="holds no mapping"):
        read("notes", START.format(rows=2))


@pytest.mark.parametrize(
    ("name", "text", "kind", "run"),
    [
        ("Makefile", f"train:\n\t{START}\n", "a Makefile", "make -f"),
        ("train.mk", f"train:\n\t{START}\n", "a Makefile", "make -f"),
        ("train.fish", f"set -x ROWS 2\n{START}\n", "a script of Fish", "fish"),
    ],
)
def test_what_is_no_script_of_the_bourne_shell_is_refused_by_name(read, name, text, kind, run):
    with pytest.raises(UnreadError, match=f"is {kind}, which is not read") as caught:
        read(name, text)
    assert f"asap resolve -- {run} " in (caught.value.hint or "")


@pytest.mark.parametrize(
    "start",
    [
        START.format(rows=2),
        "NPROC_PER_NODE=8 swift sft --model Qwen/Qwen3-8B --tuner_type full --per_device_train_batch_size 2",
        "NPROC_PER_NODE=8 megatron sft --model Qwen/Qwen3-8B --micro_batch_size 2 --tensor_model_parallel_size 2",
    ],
)
def test_variables_that_a_script_exports_are_on_record(read, start):
    exports = (
        "export CUDA_LAUNCH_BLOCKING=1 NCCL_ALGO=Ring NCCL_IB_HCA=$HCA CUDA_VISIBLE_DEVICES=0,1 WANDB_MODE=offline\n"
    )
    run = read("run.sh", f"{exports}NCCL_DEBUG='WARN' mpirun -np 1 -x NCCL_PROTO=LL {start}\n", hardware="h100-8")
    said = {"CUDA_LAUNCH_BLOCKING": "1", "NCCL_ALGO": "Ring", "NCCL_DEBUG": "WARN", "NCCL_PROTO": "LL"}
    assert run.environment == said
    assert run.workload.launch_blocking


@pytest.mark.parametrize(
    "start",
    [
        "torchrun --nproc_per_node 8 train.py --model Qwen/Qwen3-8B \\\n  --per_device_train_batch_size 2 \\\n",
        "python3 -m MaxText.train base.yml model_name=llama3-8b \\\n  per_device_batch_size=2 \\\n",
    ],
)
def test_what_a_comment_keeps_from_a_command_is_said(read, start):
    run = read("run.sh", f"{start}  # more=1 \\\n  --seed 1\n", hardware="h100-8")
    assert run.workload.global_batch == 16
    assert any("a comment ends the command before --seed 1:" in note for note in run.notes)
    whole = read("run.sh", f"{start}  --seed 1 # more=1\n", hardware="h100-8")
    assert not any("a comment ends" in note for note in whole.notes)


@pytest.mark.parametrize("line", ["for in; do", "install() { echo ${a>b} }"])
def test_a_line_that_is_no_bash_is_named(read, line):
    run = read("run.sh", f"{START.format(rows=2)}\n{line}\n")
    assert any("line 2 of run.sh is no syntax of bash that is read, and left out" in note for note in run.notes)
    assert not any("no syntax" in note for note in read("run.sh", f"{START.format(rows=2)}\n").notes)
    with pytest.raises(UnreadError, match="what begins in line 1 is no syntax of bash that is read"):
        read("run.sh", f"{START.format(rows=2)}\nROWS=$((2 *\n")
