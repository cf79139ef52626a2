"""Attention of another kind than a plain decoder's is said to be left out, whichever stack names it."""

import pytest

from tests.experiments.stack_configurations import MEGATRON, read

__all__ = ["read"]

NANOTRON = """
parallelism: {dp: 4, tp: 1, pp: 1}
tokens: {sequence_length: 8192, micro_batch_size: 1, batch_accumulation_per_replica: 1}
model:
  model_config: {is_llama_config: true, hidden_size: 1024, intermediate_size: 4096, num_hidden_layers: 12,
    num_attention_heads: 8, num_key_value_heads: 8, vocab_size: 49152}
"""
MAXTEXT = "base_config: base.yml\nmodel_name: llama2-7b\nper_device_batch_size: 1\n"
SWIFT = """NPROC_PER_NODE=8 swift sft --model Qwen/Qwen3-8B --train_type full --torch_dtype bfloat16 \\
    --max_length 8192 --per_device_train_batch_size 2 --gradient_accumulation_steps 4 \\
    --attn_impl flash_attn --deepspeed zero3 MORE
"""
LEFT_OUT = "the prediction leaves this attention out"


def left_out(run) -> list[str]:
    return [note.partition(":")[0] for note in run.notes if LEFT_OUT in note]


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        ("a.yaml", f"{NANOTRON}compressive_attention: {{segment_length: 1024}}\n", "compressive_attention"),
        ("b.yaml", f"{NANOTRON}compressive_attention: null\n", None),
        ("c.yml", f"{MAXTEXT}use_dilated_attn: true\n", "use_dilated_attn"),
        ("d.yml", f"{MAXTEXT}attention: dot_product\n", None),
        ("e.sh", MEGATRON.replace("--bf16", "--bf16 --use-strided-attention --attention-impl lightning"),
         "use_strided_attention, attention_impl=lightning"),
        ("k.sh", MEGATRON.replace("--bf16", "--bf16 --use-gated-deltanet --rwkv-chunk 16"), "use_gated_deltanet"),
        ("l.yaml", f"{NANOTRON}use_mamba_layers: true\n", "use_mamba_layers"),
        ("m.yaml", f"{NANOTRON}use_retnet: false\nmamba_state_dim: 128\n", None),
        ("n.yml", f"{MAXTEXT}pretrain_multipack_attn: true\nintra_document_attention: true\n", None),
        ("f.sh", MEGATRON.replace("--bf16", "--bf16 --attention-backend flash --checkpoint-attention"), None),
        ("g.sh", SWIFT.replace("MORE", "--shift_attn true"), "shift_attn"),
        ("h.sh", SWIFT.replace("MORE", "--use_flash_attn true --shift_attn false"), None),
        ("i.sh", SWIFT.replace("flash_attn ", "star_shaped ").replace("MORE", ""), "attn_impl=star_shaped"),
        ("j.sh", SWIFT.replace("flash_attn ", "kernels-community/flash-attn3 ").replace("MORE", ""), None),
    ],
)  # fmt: skip
def test_another_attention_is_said_to_be_left_out_and_a_kernel_is_not(read, name, text, said):
    assert left_out(read(name, text, hardware=None if name[0] in "ablm" else "h100-8")) == ([said] if said else [])
