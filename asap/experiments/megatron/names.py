"""Names of Megatron-LM's arguments, of its forks', and of what runs them."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from asap.core.errors import ConfigError
from asap.core.text import plain
from asap.experiments.settings.remarks import note_on_unused
from asap.stacks.megatron.degrees import is_fully_sharded
from asap.stacks.stack_settings import StackSettings

CORE, DEEPSPEED = "Megatron-Core", "Megatron-DeepSpeed"
"""Frameworks that have these arguments, as a workload names them."""

FLASH = (
    "use_flash_attn", "use_flash_attn_v1", "use_flash_attn_v2", "use_flash_attn_triton", "use_flash_attn_builder",
)  # fmt: skip
"""A fused attention: Megatron-LM's, and Megatron-DeepSpeed's by the version of the kernel."""

READ = frozenset(
    [
        "num_layers",
        "hidden_size",
        "ffn_hidden_size",
        "num_attention_heads",
        "kv_channels",
        "group_query_attention",
        "num_query_groups",
        "attention_head_type",
        "num_key_value_heads",
        "seq_length",
        "max_position_embeddings",
        "position_embedding_type",
        "use_rotary_position_embeddings",
        "swiglu",
        "quick_geglu",
        "squared_relu",
        "untie_embeddings_and_output_weights",
        "vocab_size",
        "padded_vocab_size",
        "make_vocab_size_divisible_by",
        "tokenizer_model",
        "tokenizer_type",
        "normalization",
        "qk_layernorm",
        "window_size",
        "window_attn_skip_freq",
        "multi_latent_attention",
        "q_lora_rank",
        "kv_lora_rank",
        "qk_head_dim",
        "qk_pos_emb_head_dim",
        "v_head_dim",
        "num_experts",
        "moe_router_topk",
        "moe_ffn_hidden_size",
        "moe_shared_expert_intermediate_size",
        "moe_layer_freq",
        "moe_expert_capacity_factor",
        "moe_pad_expert_input_to_capacity",
        "mtp_num_layers",
        "micro_batch_size",
        "global_batch_size",
        "tensor_model_parallel_size",
        "pipeline_model_parallel_size",
        "context_parallel_size",
        "cp_comm_type",
        "cuda_graph_impl",
        "cuda_graph_modules",
        "cuda_graph_scope",
        "enable_cuda_graph",
        "external_cuda_graph",
        "overlap_moe_expert_parallel_comm",
        "tp_comm_overlap",
        "moe_token_dispatcher_type",
        "moe_enable_deepep",
        "moe_flex_dispatcher_backend",
        "ds_sequence_parallel_size",
        "zero_stage",
        "topk",
        "expert_interval",
        "mlp_type",
        "moe_expert_parallel_size",
        "moe_train_capacity_factor",
        "disable_moe_token_dropping",
        "enable_expert_tensor_parallelism",
        "expert_model_parallel_size",
        "expert_tensor_parallel_size",
        "num_layers_per_virtual_pipeline_stage",
        "num_virtual_stages_per_pipeline_rank",
        "virtual_pipeline_model_parallel_size",
        "sequence_parallel",
        "use_distributed_optimizer",
        "use_megatron_fsdp",
        "use_torch_fsdp2",
        "use_custom_fsdp",
        "data_parallel_sharding_strategy",
        "num_distributed_optimizer_instances",
        "recompute_granularity",
        "recompute_method",
        "recompute_num_layers",
        "recompute_layer_ids",
        "recompute_modules",
        "recompute_activations",
        "bf16",
        "fp16",
        "grad_reduce_in_bf16",
        "grad_reduce_in_fp32",
        "accumulate_allreduce_grads_in_fp32",
        "main_grads_dtype",
        "megatron_fsdp_grad_comm_dtype",
        "megatron_fsdp_main_grads_dtype",
        "fp8_format",
        "fp4_format",
        "optimizer",
        "use_precision_aware_optimizer",
        "exp_avg_dtype",
        "exp_avg_sq_dtype",
        "optimizer_cpu_offload",
        "attention_backend",
        *FLASH,
        "transformer_impl",
        "use_legacy_models",
        "world_size",
        "nproc_per_node",
        "nnodes",
        "pipeline_model_parallel_layout",
        "language_model_type",
        "vision_model_type",
        "retro_add_retriever",
        "experimental_attention_variant",
        "linear_attention_freq",
        "linear_num_key_heads",
        "linear_key_head_dim",
        "linear_num_value_heads",
        "linear_value_head_dim",
        "linear_conv_kernel_dim",
        "attention_output_gate",
        "hybrid_override_pattern",
        "hybrid_layer_pattern",
        "is_hybrid_model",
        "parallel_attention",
        "glu_activation",
        "num_attention_heads_kv",
        "no_tie_embed_logits",
        "parallel_attn",
        "pad_vocab_size_to",
        "checkpoint_activations",
        "activations_checkpoint_method",
        "fp8_hybrid",
        "fp8_e4m3",
        "multi_head_latent_attention",
        "qk_nope_head_dim",
        "qk_rope_head_dim",
        "moe_intermediate_size",
        "n_shared_experts",
        "first_k_dense_replace",
        "interleave_sliding_window",
        "sliding_window",
        "geglu",
        "gelu_tanh",
        "yaml_cfg",
    ]
)
"""Arguments that the reader takes; the others are kept as they are."""

FLAGS = frozenset(
    [
        "group_query_attention", "swiglu", "quick_geglu", "squared_relu", "untie_embeddings_and_output_weights",
        "qk_layernorm", "multi_latent_attention", "sequence_parallel", "use_distributed_optimizer", "use_megatron_fsdp",
        "use_torch_fsdp2", "use_custom_fsdp", "recompute_activations", "bf16", "fp16", "optimizer_cpu_offload",
        "use_precision_aware_optimizer",
        "grad_reduce_in_bf16", "grad_reduce_in_fp32", "accumulate_allreduce_grads_in_fp32",
        *FLASH, "use_legacy_models", "is_hybrid_model", "parallel_attention", "deepspeed",
        "use_rotary_position_embeddings", "use_checkpoint_args", "use_lf_gate",
        "disable_moe_token_dropping", "enable_expert_tensor_parallelism",
        "no_pipeline_parallel", "deepspeed_activation_checkpointing", "checkpoint_activations",
        "enable_cuda_graph", "external_cuda_graph", "moe_pad_expert_input_to_capacity",
        "overlap_moe_expert_parallel_comm", "retro_add_retriever",
        "attention_output_gate", "no_tie_embed_logits", "parallel_attn", "fp8_hybrid", "fp8_e4m3",
        "multi_head_latent_attention", "geglu", "gelu_tanh",
    ]
)  # fmt: skip
"""Arguments without a value."""


_ADAPTERS, _SCHEME, _NONE = "peft", "peft_scheme", "none"
_HINT = "give a run that trains all parameters on tokens"
_DISTILLATION = "distils another model: the step of its teacher is not modelled"
_PREFERENCES = "trains on preferences or rewards, which is not modelled"
_OF_MODEL = {
    "teacher": _DISTILLATION,
    "kd_config": _DISTILLATION,
    **dict.fromkeys(("dpo", "kto", "ppo", "spin", "reinforce", "reward_model_type"), _PREFERENCES),
}


def check_method(values: Mapping[str, Any], path: Path) -> None:
    """Raise ConfigError where a configuration trains adapters, distils a model, or trains on preferences."""
    model = values["model"]
    if scheme := _scheme(values.get(_ADAPTERS)) or _scheme(model.get(_ADAPTERS)):
        reason = f"{_ADAPTERS} is {plain(scheme, 40)}: training a part of the parameters is not modelled"
        raise ConfigError(reason, where=str(path), hint=_HINT)
    if found := next((key for key in _OF_MODEL if model.get(key) is not None), None):
        raise ConfigError(f"model.{found}: {_OF_MODEL[found]}", where=str(path), hint=_HINT)


def _scheme(said: Any) -> str | None:
    """What adapters are called: a word, or a mapping with its scheme (NeMo) or its class (Megatron-Bridge)."""
    if isinstance(said, Mapping):
        if _SCHEME in said:
            return _scheme(said[_SCHEME])
        return str(said.get("_target_", "said")).rpartition(".")[2] if said else None
    return None if str(said).casefold() in ("", _NONE, "false") else str(said)


_USUAL: dict[str, object] = {
    "fine_grained_activation_offloading": False,
    "cpu_offloading": False,
    "cpu_offloading_num_layers": False,
    "activation_offload_fraction": False,
    "offload_optimizer_states": False,
    "distribute_saved_activations": False,
    "hybrid_context_parallel": False,
    "ds_sequence_parallel_fpdt": False,
    "freeze_all_layers": False,
    "optimizer_offload_fraction": 1.0,
    "outer_dp_sharding_strategy": "no_shard",
}
"""Argument → what it is by default (``megatron/training/arguments.py``; ``model_parallel_config.py``;
Megatron-DeepSpeed)."""
_INSTANCES = {"num_distributed_optimizer_instances": 1}
"""A plan says them where parameters are sharded."""


def not_predicted(settings: StackSettings) -> tuple[str, ...]:
    """One note that names them all; none where all are as Megatron-LM has them."""
    return note_on_unused(settings, _USUAL | ({} if is_fully_sharded(settings) else _INSTANCES))
