"""Python programs that set the arguments of Hugging Face's Trainer themselves."""

import pytest

from asap.core.errors import ConfigError
from asap.plans import Remat
from tests.experiments.stack_configurations import read

__all__ = ["read"]

PROGRAM = """
import argparse, os
import torch
from transformers import AutoModelForCausalLM, AutoTokenizer, Trainer, TrainingArguments

NAME = "Qwen/Qwen3-8B"

def parse():
    parser = argparse.ArgumentParser()
    parser.add_argument("--rows", type=int, default=2)
    parser.add_argument("--lora", action="store_true")
    return parser.parse_args()

def main():
    args = parse()
    model = AutoModelForCausalLM.from_pretrained(NAME, torch_dtype=torch.bfloat16, attn_implementation="sdpa")
    if args.lora:
        model = get_peft_model(model, LoraConfig(r=8))
    settings = dict(bf16=True, gradient_accumulation_steps=4)
    arguments = TrainingArguments(
        output_dir=os.environ["OUT"], per_device_train_batch_size=args.rows, MORE, **settings
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
    assert "arguments of the program stand in TrainingArguments(…), line 20 of train.py, as name=value" in run.notes
    assert any("the defaults are taken: " in note and "rows=2" in note for note in run.notes)


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
        ("default=2", "required=True", "sets per_device_train_batch_size to what only a run can tell"),
        ("=args.rows", "=rows_of(FILE)", "sets per_device_train_batch_size to what only a run can tell"),
        ("**settings", "**json.load(open(FILE))", "which only a run can tell"),
        ('"--lora", action="store_true"', '"--lora", required=True', "trains adapters"),
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
    text = PLAIN.replace("default=2", "required=True")
    said = ("accelerate_config=multi_gpu", "per_device_train_batch_size=8")
    assert read("train.py", text, *said, hardware="h100-8").workload.global_batch == 256


def test_a_program_that_takes_all_from_its_command_line_is_another(read):
    text = "from transformers import TrainingArguments, HfArgumentParser\nargs = HfArgumentParser(TrainingArguments)\n"
    with pytest.raises(ConfigError, match="is told all by its command, which is not read"):
        read("train.py", text)
