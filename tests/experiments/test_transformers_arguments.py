import json

import pytest

from asap.experiments.settings.transformers_arguments import attention_kernel, loaded_in_bf16
from tests.experiments.stack_configurations import read

__all__ = ["read"]

ZERO = {"zero_optimization": {"stage": 2}, "train_micro_batch_size_per_gpu": "auto"}
COMMAND = (
    "deepspeed --num_gpus 8 tune.py --deepspeed zero2.json --model_name_or_path Qwen/Qwen3-4B"
    " --per_device_train_batch_size 1 --max_seq_length 2048 --packing true"
)


@pytest.mark.parametrize(
    ("said", "kernel"),
    [
        ({"attn_implementation": "eager"}, "eager"),
        ({"attn_implementation": "kernels-community/flash-attn"}, "flash"),
        ({"attn_impl": "sdpa"}, "sdpa"),
        ({"flash_attn": "disabled"}, "eager"),
        ({"flash_attn": "fa2"}, "flash"),
        ({"flash_attn": "auto"}, None),
        ({"use_flash_attention_2": True}, "flash"),
        ({"use_flash_attn": "False"}, None),
        ({}, None),
    ],
)
def test_the_kernel_of_attention(said, kernel):
    assert attention_kernel(said) == kernel


@pytest.mark.parametrize(("value", "loaded"), [("bfloat16", True), ("torch.bfloat16", True), ("float32", False)])
def test_the_type_that_weights_load_in(value, loaded):
    assert loaded_in_bf16({"torch_dtype": value}) is loaded


@pytest.mark.parametrize(
    ("enabled", "more", "precision", "attention"),
    [
        ({}, "", "fp32", None),
        ({}, " --torch_dtype bfloat16 --attn_implementation eager", "bf16", "eager"),
        ({"bf16": {"enabled": True}}, " --flash_attn disabled", "bf16", "eager"),
        ({"fp16": {"enabled": True}}, " --torch_dtype bfloat16", "fp16", None),
    ],
)
def test_deepspeed_casts_what_it_enables_and_the_program_says_the_rest(
    read, tmp_path, enabled, more, precision, attention
):  # fmt: skip
    (tmp_path / "zero2.json").write_text(json.dumps(ZERO | enabled), encoding="utf-8")
    work = read("run.sh", COMMAND + more, hardware="a100-8").workload
    assert (work.precision, work.attention) == (precision, attention)


def test_attention_that_is_switched_off_its_kernel_is_no_attention_of_another_kind(read, tmp_path):
    (tmp_path / "zero2.json").write_text(json.dumps(ZERO), encoding="utf-8")
    run = read("run.sh", f"{COMMAND} --flash_attn disabled", hardware="a100-8")
    assert not any("another kind" in note or "leaves this attention out" in note for note in run.notes)
