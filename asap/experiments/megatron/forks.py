"""Megatron's arguments as forks have them, and arguments that are none of its own."""

import re
from collections.abc import Iterable, Sequence
from functools import cache
from pathlib import Path
from typing import Any

from asap.core.errors import ConfigError
from asap.core.text import plain
from asap.experiments.megatron.architecture import mlp_width
from asap.experiments.megatron.names import READ
from asap.experiments.settings.remarks import decides, recomputes
from asap.experiments.shell import options
from asap.stacks.megatron.releases import EXPERT_DEGREE, EXPERTS_SPLIT, RECOMPUTES_ALL, ULYSSES, ZERO
from asap.stacks.stack_settings import StackSettings

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


_NAMES = Path(__file__).parent / "megatron_arguments.txt"
_PROGRAM = ".py "
_NESTED = re.compile(r"\$\([^()]*\)")
_NEGATIONS = ("no_", "disable_")
_MOST_LISTED = 6
_EXPERTS = re.compile(r"(?:^|_)(?:num|n|number_of)_(?:\w+_)?experts$|(?:^|_)experts_(?:num|count|number)$")
_MEETING = re.compile(
    r"(?:^|_)(?:addr|address|port|host|hostfile|hostname|mpi|rdzv|(?:node|local|machine)_rank)(?:_|$)"
)
"""In names of arguments that say how processes find each other, and nothing of a step."""
_ONE = ("0", "1", "none", "null", "")


def arguments_within(command: str) -> str:
    """What follows the program in a command that starts it, which is behind its launcher."""
    return _NESTED.sub("", command).partition(_PROGRAM)[2]


def foreign_arguments(arguments: str) -> tuple[str, ...]:
    """Arguments of a program that Megatron-LM does not have; those that by their name decide the model come first."""
    said = dict.fromkeys(option.name for option in options(_NESTED.sub("", arguments)))
    foreign = [key for key in said if not _is_known(key) and not _MEETING.search(key)]
    return tuple(sorted(foreign, key=lambda key: not decides(key)))


def decides_recomputation(foreign: Iterable[str]) -> bool:
    """Whether one of them by its name says what is recomputed, or kept in host memory."""
    return any(recomputes(key) for key in foreign)


def counts_experts(arguments: str) -> bool:
    """Whether an argument that Megatron-LM does not have gives a number of experts, by its name and value."""
    said = (option for option in options(_NESTED.sub("", arguments)) if _EXPERTS.search(option.name))
    return any(not _is_known(option.name) and option.words and option.words[0] not in _ONE for option in said)


def note_on_foreign(foreign: Sequence[str], name: str) -> str | None:
    """A note on arguments that Megatron-LM does not have; ``None`` where it has them all.

    Args:
        foreign: their names.
        name: of the script.
    """
    if not foreign:
        return None
    options_ = [f"--{key.replace('_', '-')}" for key in foreign]
    most = max(_MOST_LISTED, sum(map(decides, foreign)))
    listed = plain(", ".join(options_[:most]), 400) + (", …" if len(options_) > most else "")
    return f"{name} sets arguments that Megatron-LM does not have; their effect is unknown: {listed}"


def _is_known(key: str) -> bool:
    return any(form in _known() for form in (key, *(key.removeprefix(word) for word in _NEGATIONS)))


@cache
def _known() -> frozenset[str]:
    lines = _NAMES.read_text(encoding="utf-8").splitlines()
    return READ | {word for line in lines if not line.startswith("#") for word in line.split()}


_TENSOR, _PIPELINE = "tensor_model_parallel_size", "pipeline_model_parallel_size"
_INSTEAD = "say the plan with --plan, and give the model's config.json as --config"


def of_deepspeed(settings: StackSettings) -> StackSettings:
    """The same arguments in Megatron-LM's words.

    Raises:
        ConfigError: DeepSpeed refuses them, or a plan cannot say them.
    """
    said: dict[str, Any] = {}
    if ULYSSES in settings:
        said |= {"context_parallel_size": settings[ULYSSES], "cp_comm_type": "a2a"}
    if "num_key_value_heads" in settings:
        said |= {"group_query_attention": True, "num_query_groups": settings["num_key_value_heads"]}
    if settings.flag("no_pipeline_parallel"):
        said |= {_PIPELINE: 1}
    said |= _experts_of_deepspeed(settings)
    stage = settings.whole(ZERO) or 0
    if stage not in range(4):
        raise settings.wrong(ZERO, "0 to 3")
    if stage:
        said |= {"use_distributed_optimizer": True}
    if stage > 1 and str(said.get(_PIPELINE, settings.get(_PIPELINE, 1))) != "1":
        reason = f"{ZERO} is {stage}, which DeepSpeed refuses with pipeline stages"
        raise ConfigError(
            reason, where=settings.where(ZERO), hint="add zero_stage=1, or pipeline_model_parallel_size=1"
        )
    return settings.overridden(said)


def _experts_of_deepspeed(settings: StackSettings) -> dict[str, Any]:
    """DeepSpeed's experts: in the last of every ``expert_interval`` layers, each as wide as an MLP of the model."""
    counts = set(settings.words("num_experts"))
    if counts <= {"1"}:
        return {"num_experts": None} if counts else {}
    if len(counts) > 1:
        reason = "num_experts: layers with different numbers of experts are not modelled"
        raise ConfigError(reason, where=settings.where("num_experts"), hint=_INSTEAD)
    split = settings.flag(EXPERTS_SPLIT)
    if not split and str(settings.get(_TENSOR, 1)) != "1":
        reason = f"num_experts: experts that tensor parallelism does not split (no {EXPERTS_SPLIT}) are not modelled"
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
