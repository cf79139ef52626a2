"""nanotron's configurations: what is read, and what is refused."""

import pytest

from asap.core.errors import ConfigError
from asap.plans import Plan
from asap.stacks.launchers import inexpressible
from tests.experiments.stack_configurations import read

__all__ = ["read"]

CONFIG = """
general: {project: debug, run: tiny_llama}
model:
  dtype: bfloat16
  model_config: {is_llama_config: true, hidden_size: 2048, intermediate_size: 11008, num_attention_heads: 16,
    num_hidden_layers: 28, num_key_value_heads: 2, tie_word_embeddings: true, vocab_size: 128256}
optimizer: {accumulate_grad_in_fp32: true, optimizer_factory: {name: adamW}, zero_stage: 1}
parallelism: {dp: 4, pp: 2, tp: 2, pp_engine: 1f1b, tp_mode: REDUCE_SCATTER}
tokens: {batch_accumulation_per_replica: 8, micro_batch_size: 3, sequence_length: 4096, train_steps: 2000}
"""


def test_a_dense_decoder(read):
    run = read("config.yaml", CONFIG)
    assert (run.model.layers, run.model.d_ff, run.model.kv_heads, run.model.tied_embeddings) == (28, 11008, 2, True)
    assert str(run.plan) == "replica=4 model=2 stage=2 microbatches=8 remat=none"
    assert run.hardware.devices == 16
    assert (run.workload.global_batch, run.workload.sequence_length) == (96, 4096)
    assert (run.workload.framework, run.workload.zero_stage, run.workload.precision) == ("nanotron", 1, "bf16")
    assert (run.workload.gradient_precision, run.workload.sequence_parallel) == ("fp32", True)


def test_experts_and_context_parallelism_of_its_qwen(read):
    mixture = "is_qwen2_config: true, sliding_window_size: 512, moe_config: {num_experts: 64, top_k: 4}"
    text = CONFIG.replace("is_llama_config: true", f"{mixture}, _attn_implementation: llama3_ring_attention")
    run = read("config.yaml", text, "parallelism.context_parallel_size=2", "parallelism.recompute_layer=true")
    assert (run.model.experts, run.model.experts_per_token, run.model.expert_d_ff) == (64, 4, 1408)
    assert (run.model.shared_experts, run.model.sliding_window) == (0, 512)
    assert (run.workload.context_parallel, run.plan.degree("seq"), str(run.plan.remat)) == ("all_gather", 2, "full")


def test_starcoder_has_names_of_its_own(read):
    own = "is_starcoder2_config: true, num_kv_heads: 2, grouped_query: true"
    text = CONFIG.replace("is_llama_config: true", own).replace(" num_key_value_heads: 2,", "")
    run = read("config.yaml", text.replace(" intermediate_size: 11008,", ""))
    assert (run.model.kv_heads, run.model.d_ff, run.model.gated_mlp) == (2, 8192, False)
    one = read("config.yaml", text.replace("num_kv_heads: 2, grouped_query", "n_inner: 4096, multi_query"))
    assert (one.model.kv_heads, one.model.heads) == (1, 16)


@pytest.mark.parametrize(
    ("before", "after", "said"),
    [
        ("is_llama_config", "is_mamba_config", "is of no kind that is read"),
        ("dp: 4", "dp: 8", "is 32, and the hardware has 16 devices"),
        ("dp: 4", "dp: none", "parallelism.dp must be a positive whole number"),
        ("micro_batch_size: 3", "micro_batch_size: 0", "micro_batch_size must be a positive whole number"),
        ("zero_stage: 1", "zero_stage: -1", "optimizer.zero_stage must be one of"),
        ("num_hidden_layers: 28", "num_hidden_layers: many", "num_hidden_layers"),
        ("is_llama_config: true", "is_qwen2_config: true, moe_config: {num_experts: 2, top_k: 4}", "experts per token"),
        ("is_llama_config: true", "is_qwen2_config: true, moe_config: {num_experts: 4, layers: [1]}", "all layers"),
    ],
)
def test_what_cannot_be_read_is_refused(read, before, after, said):
    with pytest.raises(ConfigError, match=said):
        read("config.yaml", CONFIG.replace(before, after), hardware="h100-16")


def test_what_nanotron_refuses_is_no_proposal(read):
    dense = read("config.yaml", CONFIG).hyperparameters
    ring = CONFIG.replace("is_llama_config: true", "is_qwen2_config: true, _attn_implementation: llama3_ring_attention")
    context, few = Plan.parse("replica=8 seq=2"), Plan.parse("replica=2 stage=8 microbatches=4")
    assert "in its Qwen alone" in (inexpressible(context, "nanotron", dense) or "")
    assert inexpressible(context, "nanotron", read("config.yaml", ring).hyperparameters) is None
    assert "too few for 8 stages" in (inexpressible(few, "nanotron", dense) or "")
    assert inexpressible(few.model_copy(update={"microbatches": 8}), "nanotron", dense) is None
