"""Arguments of Megatron-LM's forks in its own words: MindSpeed-LLM's, BigCode's, epfLLM's, Megatron-DeepSpeed's."""

from typing import Any

from asap.core.errors import ConfigError
from asap.stacks.megatron.architecture import mlp_width
from asap.stacks.megatron.releases import EXPERT_DEGREE, EXPERTS_SPLIT, RECOMPUTES_ALL, ULYSSES, ZERO, is_set
from asap.stacks.registry import spec
from asap.stacks.stack_settings import StackSettings

_GATES = ("geglu", "gelu_tanh")
"""MindSpeed-LLM gates its MLPs by either (``core/transformer/mlp.py``)."""
_GLU = ("swiglu", "geglu", "reglu", "liglu")
_METHOD = "activations_checkpoint_method"
_KEY_HEADS = ("num_key_value_heads", "num_query_groups", "group_query_attention", "attention_head_type")
_TENSOR, _PIPELINE = "tensor_model_parallel_size", "pipeline_model_parallel_size"
_INSTEAD = "say the plan with --plan, and give the model's config.json as --config"


def of_forks(settings: StackSettings) -> StackSettings:
    """The same arguments, with what others call otherwise under the names of Megatron-LM; raises ConfigError where one
    is of the wrong kind."""
    renamed = spec("megatron").renamed
    said: dict[str, Any] = {today: settings[key] for key, today in renamed.items() if key in settings}
    if "num_attention_heads_kv" in settings:
        said["group_query_attention"] = True
    if settings.choice("glu_activation", _GLU) or any(settings.flag(key) for key in _GATES):
        said["swiglu"] = True
    said |= _experts(settings.overridden(said)) | _windows(settings)
    if settings.get("position_embedding_type") == "absolute":
        said["position_embedding_type"] = "learned_absolute"
    if any(settings.flag(key) for key in ("fp8_hybrid", "fp8_e4m3")):
        said["fp8_format"] = "hybrid" if "fp8_hybrid" in settings else "e4m3"
    recomputes = _METHOD in settings or any(is_set(settings, key) for key in RECOMPUTES_ALL)
    if recomputes and "recompute_granularity" not in settings:
        said |= {"recompute_granularity": "full", "recompute_method": settings.get(_METHOD, "uniform")}
    return settings.overridden(said) if said else settings


def _experts(settings: StackSettings) -> dict[str, Any]:
    """Shared experts as their width, and leading dense layers as a pattern."""
    said: dict[str, Any] = {}
    shared, width = settings.count("n_shared_experts"), settings.count("moe_ffn_hidden_size")
    if shared and width:
        said["moe_shared_expert_intermediate_size"] = shared * width
    dense, layers = settings.whole("first_k_dense_replace"), settings.count("num_layers")
    if dense and layers and str(settings.get("moe_layer_freq", 1)) == "1" and dense < layers:
        said["moe_layer_freq"] = f"[0]*{dense}+[1]*{layers - dense}"
    return said


def _windows(settings: StackSettings) -> dict[str, Any]:
    """A window, in tokens: of all layers, or of every second one."""
    every = settings.count("interleave_sliding_window")
    window = every or settings.count("sliding_window")
    if window is None:
        return {}
    return {"window_size": f"{window - 1},0", **({"window_attn_skip_freq": 2} if every else {})}


def left_to_checkpoint(settings: StackSettings) -> frozenset[str]:
    """What the checkpoint decides under ``--use-checkpoint-args``, and scripts leave to it (``checkpointing.py``)."""
    said = not settings.flag("use_checkpoint_args") or any(key in settings for key in _KEY_HEADS)
    return frozenset() if said else frozenset(("num_key_value_heads",))


def of_deepspeed(settings: StackSettings) -> StackSettings:
    """Arguments of Megatron-DeepSpeed in Megatron-LM's words.

    Raises:
        ConfigError: DeepSpeed refuses them, or a plan cannot say them.
    """
    said: dict[str, Any] = {}
    if ULYSSES in settings:
        said |= {"context_parallel_size": settings[ULYSSES], "cp_comm_type": "a2a"}
    if "num_key_value_heads" in settings:
        said |= {"group_query_attention": True, "num_query_groups": settings["num_key_value_heads"]}
    if settings.flag("no_pipeline_parallel"):
        said[_PIPELINE] = 1
    said |= _experts_of_deepspeed(settings)
    stage = settings.whole(ZERO) or 0
    if stage not in range(4):
        raise settings.wrong(ZERO, "0 to 3")
    if stage > 1 and str(said.get(_PIPELINE, settings.get(_PIPELINE, 1))) != "1":
        reason = f"{ZERO} is {stage}, which DeepSpeed refuses with pipeline stages"
        hint = "add zero_stage=1, or pipeline_model_parallel_size=1"
        raise ConfigError(reason, where=settings.where(ZERO), hint=hint)
    return settings.overridden(said | ({"use_distributed_optimizer": True} if stage else {}))


def _experts_of_deepspeed(settings: StackSettings) -> dict[str, Any]:
    """DeepSpeed's experts: in the last of every ``expert_interval`` layers, each as wide as an MLP of the model."""
    counts = set(settings.words("num_experts"))
    if counts <= {"1"}:
        return {"num_experts": None} if counts else {}
    split = settings.flag(EXPERTS_SPLIT) or str(settings.get(_TENSOR, 1)) == "1"
    if len(counts) > 1 or not split:
        kind = "layers with different numbers of experts"
        kind = f"experts that tensor parallelism does not split (no {EXPERTS_SPLIT})" if len(counts) == 1 else kind
        reason = f"num_experts: {kind} are not modelled"
        raise ConfigError(reason, where=settings.where("num_experts"), hint=_INSTEAD)
    residual = settings.text("mlp_type", "standard") == "residual"
    drops = not settings.flag("disable_moe_token_dropping")
    return {
        "num_experts": counts.pop(),
        "moe_router_topk": settings.get("topk", 1),
        "moe_layer_freq": settings.get("expert_interval", 2),
        "moe_shared_expert_intermediate_size": mlp_width(settings) if residual else None,
        "expert_model_parallel_size": settings.get(EXPERT_DEGREE, 1),
        "moe_pad_expert_input_to_capacity": drops,
        "moe_expert_capacity_factor": settings.get("moe_train_capacity_factor", 1.0) if drops else None,
    }
