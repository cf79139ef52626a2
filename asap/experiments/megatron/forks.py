"""Arguments of earlier versions and forks of Megatron-LM in today's words (bigscience-workshop/Megatron-DeepSpeed,
bigcode-project/Megatron-LM, epfLLM/Megatron-LLM, ``megatron/arguments.py``; Ascend/MindSpeed-LLM,
``mindspeed_llm/training/arguments.py``)."""

from typing import Any

from asap.experiments.settings.stack_settings import StackSettings
from asap.stacks.megatron.forks import RECOMPUTES_ALL

_GATED = ("swiglu", "geglu", "reglu", "liglu")
_SAME = {
    "num_attention_heads_kv": "num_query_groups",
    "no_tie_embed_logits": "untie_embeddings_and_output_weights",
    "parallel_attn": "parallel_attention",
    "pad_vocab_size_to": "padded_vocab_size",
    "multi_head_latent_attention": "multi_latent_attention",
    "qk_nope_head_dim": "qk_head_dim",
    "qk_rope_head_dim": "qk_pos_emb_head_dim",
    "moe_intermediate_size": "moe_ffn_hidden_size",
}
_GATES = ("geglu", "gelu_tanh")
"""MindSpeed-LLM gates its MLPs by either (``core/transformer/mlp.py``)."""
_SHARED, _DENSE, _ALTERNATING = "n_shared_experts", "first_k_dense_replace", "interleave_sliding_window"
_POSITIONS, _ABSOLUTE = "position_embedding_type", "absolute"
_METHOD = "activations_checkpoint_method"
_KEY_HEADS = frozenset(("num_key_value_heads", "num_query_groups", "group_query_attention", "attention_head_type"))


def of_forks(settings: StackSettings) -> StackSettings:
    """The same arguments, with what others call otherwise under the names of Megatron-LM; raises ConfigError where one
    is of the wrong kind."""
    said: dict[str, Any] = {today: settings[key] for key, today in _SAME.items() if key in settings}
    if "num_attention_heads_kv" in settings:
        said["group_query_attention"] = True
    if "glu_activation" in settings and settings.choice("glu_activation", _GATED):
        said["swiglu"] = True
    if any(settings.flag(key) for key in _GATES):
        said["swiglu"] = True
    said |= _experts(settings.overridden(said)) | _windows(settings)
    if settings.get(_POSITIONS) == _ABSOLUTE:
        said[_POSITIONS] = "learned_absolute"
    if any(settings.flag(key) for key in ("fp8_hybrid", "fp8_e4m3") if key in settings):
        said["fp8_format"] = "hybrid" if "fp8_hybrid" in settings else "e4m3"
    recomputes = _METHOD in settings or any(settings.get(key) not in (None, False) for key in RECOMPUTES_ALL)
    if recomputes and "recompute_granularity" not in settings:
        said |= {"recompute_granularity": "full", "recompute_method": settings.get(_METHOD, "uniform")}
    return settings.overridden(said) if said else settings


def _experts(settings: StackSettings) -> dict[str, Any]:
    """Shared experts as their width, and leading dense layers as a pattern."""
    said: dict[str, Any] = {}
    shared, width = settings.count(_SHARED), settings.count("moe_ffn_hidden_size")
    if shared and width:
        said["moe_shared_expert_intermediate_size"] = shared * width
    dense, layers = settings.whole(_DENSE), settings.count("num_layers")
    if dense and layers and str(settings.get("moe_layer_freq", 1)) == "1" and dense < layers:
        said["moe_layer_freq"] = f"[0]*{dense}+[1]*{layers - dense}"
    return said


def _windows(settings: StackSettings) -> dict[str, Any]:
    """A window, in tokens: of all layers, or of every second one."""
    every = settings.count(_ALTERNATING)
    window = every or settings.count("sliding_window")
    if window is None:
        return {}
    return {"window_size": f"{window - 1},0", **({"window_attn_skip_freq": 2} if every else {})}


def left_to_checkpoint(settings: StackSettings) -> frozenset[str]:
    """What the checkpoint decides under ``--use-checkpoint-args``, and scripts leave to it (``checkpointing.py``)."""
    if not settings.flag("use_checkpoint_args") or _KEY_HEADS & settings.keys():
        return frozenset()
    return frozenset(("num_key_value_heads",))
