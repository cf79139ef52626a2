"""Python programs that set the arguments of Hugging Face's Trainer themselves."""

import pytest

from asap.core.errors import ConfigError
from asap.plans import Remat
from tests.experiments.stack_configurations import read

__all__ = ["read"]

PROGRAM = """
import os
import torch
from transformers import AutoModelForCausalLM, AutoTokenizer, Trainer, TrainingArguments

NAME = "Qwen/Qwen3-8B"

def main():
    rows = 2
    model = AutoModelForCausalLM.from_pretrained(NAME, torch_dtype=torch.bfloat16, attn_implementation="sdpa")
    settings = dict(bf16=True, gradient_accumulation_steps=4)
    arguments = TrainingArguments(
        output_dir=os.environ["OUT"], per_device_train_batch_size=rows, MORE, **settings
    )
    Trainer(model=model, args=arguments).train()

main()
"""
SFT = """
from trl import SFTConfig, SFTTrainer
config = SFTConfig(per_device_train_batch_size=4, max_length=2048, packing=True, bf16=True, gradient_checkpointing=True)
SFTTrainer(model="Qwen/Qwen3-0.6B", args=config).train()
"""
PLAIN = PROGRAM.replace(" MORE,", "")


def test_arguments_and_model_of_a_program(read):
    run = read("train.py", PROGRAM.replace("MORE", 'fsdp="full_shard"'), hardware="h100-16")
    assert (run.model.name, run.workload.global_batch, run.plan.degree("data")) == ("Qwen/Qwen3-8B", 128, 16)
    assert (run.workload.precision, run.plan.remat, run.workload.attention) == ("bf16", Remat.NONE, "sdpa")
    assert "arguments of the program stand in TrainingArguments(…), line 12 of train.py, as name=value" in run.notes


def test_deepspeed_beside_the_program(read, tmp_path):
    (tmp_path / "ds.json").write_text('{"zero_optimization": {"stage": 3}, "bf16": {"enabled": "auto"}}')
    more = 'deepspeed="/work/ds.json", gradient_checkpointing=True'
    run = read("train.py", PROGRAM.replace("MORE", more), hardware="h100-8")
    assert (run.workload.zero_stage, run.workload.global_batch, run.plan.remat) == (3, 64, Remat.FULL)


def test_how_a_program_is_started_is_asked(read):
    with pytest.raises(ConfigError, match="how its program is started"):
        read("train.py", PLAIN)
    assert read("train.py", PLAIN, "accelerate_config=multi_gpu", hardware="h100-8").plan.degree("replica") == 8


def test_a_model_that_the_trainer_loads(read):
    run = read("sft.py", SFT, "accelerate_config=fsdp2", hardware="h100-8")
    assert (run.model.name, run.workload.sequence_length, run.plan.remat) == ("Qwen/Qwen3-0.6B", 2048, Remat.FULL)


def test_recomputation_that_the_program_turns_on(read):
    text = PLAIN.replace("    settings = ", "    model.gradient_checkpointing_enable()\n    settings = ")
    assert read("train.py", text, "accelerate_config=multi_gpu", hardware="h100-8").plan.remat is Remat.FULL


@pytest.mark.parametrize(
    ("old", "new", "reason"),
    [
        ("rows = 2", "rows = int(os.environ['ROWS'])", "sets per_device_train_batch_size to what only a run can tell"),
        ("rows = 2", "rows = 2\n    rows += 1", "sets per_device_train_batch_size to what only a run can tell"),
        ("=rows", "=rows_of(FILE)", "sets per_device_train_batch_size to what only a run can tell"),
        ("**settings", "**json.load(open(FILE))", "takes what only a run can tell"),
        ("    settings", "    model = get_peft_model(model, LoraConfig(r=8))\n    settings", "trains adapters"),
        ("AutoModelForCausalLM.from", "AutoModelForSeq2SeqLM.from", "loads AutoModelForSeq2SeqLM"),
        ("Trainer(model", "DPOTrainer(model", "trains on preferences"),
    ],
)
def test_what_is_not_sure_is_told(read, old, new, reason):
    with pytest.raises(ConfigError, match=reason):
        read("train.py", PLAIN.replace(old, new), "accelerate_config=multi_gpu", hardware="h100-8")


@pytest.mark.parametrize(
    "text",
    [
        "from transformers import TrainingArguments\n_ = TrainingArguments('.')\nloop()\n",
        SFT.replace("SFTTrainer(model", "print(model"),
        SFT.replace("per_device_train_batch_size=4, max_length=2048, packing=True, bf16=True, ", ""),
    ],
)
def test_arguments_that_train_nothing_are_none(read, text):
    with pytest.raises(ConfigError, match="is not run"):
        read("train.py", text)


def test_what_the_user_says_wins_over_what_a_run_would_tell(read):
    text = PLAIN.replace("rows = 2", "rows = int(os.environ['ROWS'])")
    said = ("accelerate_config=multi_gpu", "per_device_train_batch_size=8")
    assert read("train.py", text, *said, hardware="h100-8").workload.global_batch == 256


def test_a_program_that_takes_all_from_its_command_line_is_another(read):
    text = "from transformers import TrainingArguments, HfArgumentParser\nargs = HfArgumentParser(TrainingArguments)\n"
    with pytest.raises(ConfigError, match="is told all by its command, which is not read"):
        read("train.py", text)
