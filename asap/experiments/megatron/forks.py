"""Arguments of earlier versions and forks of Megatron-LM in today's words (bigscience-workshop/Megatron-DeepSpeed,
bigcode-project/Megatron-LM, epfLLM/Megatron-LLM, ``megatron/arguments.py``)."""

from typing import Any

from asap.experiments.stack_settings import StackSettings
from asap.plans.megatron.deepspeed import RECOMPUTES_ALL

_GATED = ("swiglu", "geglu", "reglu", "liglu")
_SAME = {
    "num_attention_heads_kv": "num_query_groups",
    "no_tie_embed_logits": "untie_embeddings_and_output_weights",
    "parallel_attn": "parallel_attention",
    "pad_vocab_size_to": "padded_vocab_size",
}
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
    if settings.get(_POSITIONS) == _ABSOLUTE:
        said[_POSITIONS] = "learned_absolute"
    if any(settings.flag(key) for key in ("fp8_hybrid", "fp8_e4m3") if key in settings):
        said["fp8_format"] = "hybrid" if "fp8_hybrid" in settings else "e4m3"
    recomputes = _METHOD in settings or any(settings.get(key) not in (None, False) for key in RECOMPUTES_ALL)
    if recomputes and "recompute_granularity" not in settings:
        said |= {"recompute_granularity": "full", "recompute_method": settings.get(_METHOD, "uniform")}
    return settings.overridden(said) if said else settings


def left_to_checkpoint(settings: StackSettings) -> frozenset[str]:
    """What the checkpoint decides under ``--use-checkpoint-args``, and scripts leave to it (``checkpointing.py``)."""
    if not settings.flag("use_checkpoint_args") or _KEY_HEADS & settings.keys():
        return frozenset()
    return frozenset(("num_key_value_heads",))
