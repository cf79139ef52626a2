"""Which arguments a version or a fork of Megatron-LM lacks, told by those that no later one takes any more.

By the first-parent history of NVIDIA/Megatron-LM (``megatron/training/arguments.py`` up to August 2026), and the
arguments of bigscience-workshop/Megatron-DeepSpeed, bigcode-project/Megatron-LM and epfLLM/Megatron-LLM.
"""

from collections.abc import Mapping

from asap.core.errors import PlanError
from asap.stacks.megatron.forks import RECOMPUTATION, RECOMPUTES_ALL, ULYSSES, is_megatron_deepspeed
from asap.stacks.megatron.stages import LAST

JOINT = "joint_of_options"
"""Among settings: what joins the words of an option in a fork that does not write them as Megatron-LM does."""
YAML_FILE = "yaml_cfg"
"""Among settings: the YAML of Megatron-LM's own that says them, in the stead of options."""
_NOT_OF_YAML = frozenset(("num_virtual_stages_per_pipeline_rank", LAST))
_METHOD = "activations_checkpoint_method"
_SWITCH = RECOMPUTES_ALL[0]
"""Megatron-LM refuses it since 2022; Megatron-DeepSpeed takes it."""
_UNTIL_2022 = frozenset(
    [
        _METHOD, _SWITCH, "activations_checkpoint_num_layers", "override_lr_scheduler", "use_checkpoint_lr_scheduler",
        "use_contiguous_buffers_in_ddp", "fp32_allreduce", "pad_vocab_size_to", "embed_layernorm", "kill_switch_path",
        "codecarbon_dir", "skip_train_iteration_range", "abort_on_unmet_fused_kernel_constraints",
        "pp_partition_method", "use_bnb_optimizer", "sync_tp_duplicated_parameters",
    ]
)  # fmt: skip
_UNTIL_2023 = frozenset(
    [
        "DDP_impl", "data_impl", "mmap_warmup", "no_query_key_layer_scaling", "deepspeed", "deepspeed_config",
        "no_contiguous_buffers_in_local_ddp", "checkpoint_num_layers", "distribute_checkpointed_activations",
        "attention_head_type", "glu_activation", "structured_logs", "train_weighted_split_paths",
        "num_attention_heads_kv", "no_tie_embed_logits", "use_rms_norm", "parallel_attn", "zero_stage",
        "deepspeed_activation_checkpointing", ULYSSES,
    ]
)  # fmt: skip
_UNTIL_2025 = frozenset(
    [
        "retro_workdir", "log_batch_size_to_tensorboard", "no_log_learnig_rate_to_tensorboard", "enable_one_logger",
        "one_logger_entity", "delay_param_gather", "no_delay_grad_reduce", "standalone_embedding_stage",
    ]
)  # fmt: skip
_SINCE_2025 = frozenset(
    [
        "num_virtual_stages_per_pipeline_rank", "use_megatron_fsdp", "optimizer_cpu_offload", "recompute_modules",
        "use_precision_aware_optimizer", "exp_avg_dtype", "exp_avg_sq_dtype", "cuda_graph_impl",
        "moe_flex_dispatcher_backend",
    ]
)  # fmt: skip
PROFILER = "use_pytorch_profiler"
"""Since September 2024; ``--profile`` alone marks steps for Nsight Systems."""
_SINCE_2023 = frozenset(
    [
        "context_parallel_size", "expert_model_parallel_size", "expert_tensor_parallel_size", "use_torch_fsdp2",
        "num_distributed_optimizer_instances", "tp_comm_overlap", PROFILER, LAST,
    ]
)  # fmt: skip
_SINCE_2022 = frozenset([*RECOMPUTATION, "sequence_parallel", "use_distributed_optimizer", ULYSSES])
_VERSIONS = (
    (tuple(sorted(_UNTIL_2022)), _SINCE_2022 | _SINCE_2023 | _SINCE_2025),
    (tuple(sorted(_UNTIL_2023)), _SINCE_2023 | _SINCE_2025),
    (tuple(sorted(_UNTIL_2025)), _SINCE_2025),
)
"""Arguments of the past, and those that came after they were gone; the earliest first."""


def lacks(current: Mapping[str, object], key: str) -> str | None:
    """An argument on record that no version takes which has ``key``; ``None`` where none tells."""
    if YAML_FILE in current:
        return YAML_FILE if key in _NOT_OF_YAML else None
    of_deepspeed = is_megatron_deepspeed(current)
    for signs, missing in _VERSIONS:
        said = (sign for sign in signs if current.get(sign) not in (None, False))
        sign = next((sign for sign in said if not (of_deepspeed and sign == _SWITCH)), None)
        if sign is not None:
            return sign if key in missing else None
    return None


def in_words_of_version(arguments: Mapping[str, str | bool], current: Mapping[str, object]) -> dict[str, str | bool]:
    """Arguments that change, as the version has them that takes those on record.

    Raises:
        PlanError: it lacks one.
    """
    changed = _recomputing(arguments, current) if lacks(current, RECOMPUTATION[0]) else dict(arguments)
    for key, value in changed.items():
        sign = lacks(current, key) if value is not False else None
        if sign is not None and (current.get(key) is None or key in RECOMPUTATION):
            reason = f"a version of Megatron-LM that takes --{_written(sign)} has no --{_written(key)}"
            raise PlanError(reason, hint="a later version has it")
    return changed


def _recomputing(arguments: Mapping[str, str | bool], current: Mapping[str, object]) -> dict[str, str | bool]:
    """Recomputation of all layers by the switch of before 2022, none by leaving its switches out."""
    rest = {key: value for key, value in arguments.items() if key not in RECOMPUTATION}
    granularity = arguments.get(RECOMPUTATION[0])
    if granularity is None:
        return rest
    if granularity == "full":
        return {**rest, _SWITCH: True}
    if granularity is not False:
        return dict(arguments)
    return rest | {key: False for key in (*RECOMPUTES_ALL, _METHOD) if current.get(key) not in (None, False)}


def _written(key: str) -> str:
    return key.replace("_", "-")
