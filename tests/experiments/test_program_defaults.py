"""Defaults of the Trainer's arguments that a program beside its script has of its own."""

import pytest

from asap.plans import Remat
from tests.experiments.stack_configurations import read

__all__ = ["read"]

PROGRAM = """import transformers
from dataclasses import dataclass, field

@dataclass
class OurArguments(transformers.TrainingArguments):
    gradient_accumulation_steps: int = field(default=16, metadata={"help": "x"})
    gradient_checkpointing: bool = True
    model_max_length: int = field(default=512)
    output_dir: str = "out"
"""
ARGUMENTS = "train.py --model_name_or_path Qwen/Qwen3-8B --do_train --per_device_train_batch_size 2"
STAGE = '{"zero_optimization": {"stage": 3}, "bf16": {"enabled": true}, "train_micro_batch_size_per_gpu": "auto",' + (
    ' "gradient_accumulation_steps": "auto"}'
)


@pytest.mark.parametrize(
    "start", [f"torchrun --nproc_per_node 8 {ARGUMENTS}", f"deepspeed --num_gpus 8 {ARGUMENTS} --deepspeed z3.json"]
)
def test_defaults_of_the_program_are_taken_where_it_lies_beside_the_script(read, tmp_path, start):
    (tmp_path / "z3.json").write_text(STAGE)
    assert read("run.sh", start).workload.global_batch == 16
    (tmp_path / "train.py").write_text(PROGRAM)
    run = read("run.sh", start)
    assert (run.workload.global_batch, run.workload.sequence_length, run.plan.remat) == (256, 512, Remat.FULL)
    assert any("not said, and taken as" in note and "gradient_accumulation_steps=16" in note for note in run.notes)
    said = read("run.sh", f"{start} --gradient_accumulation_steps 1 --gradient_checkpointing false")
    assert (said.workload.global_batch, said.plan.remat) == (16, Remat.NONE)
