"""Low-rank adapters (LoRA, arXiv:2106.09685): which projections of a layer have them, and what they train."""

import re
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator

from asap.models.architecture import Architecture

Projection = Literal["q", "k", "v", "o", "gate", "up", "down"]
"""A matrix of a layer."""
_QKV: tuple[Projection, ...] = ("q", "k", "v")
_INTO_MLP: tuple[Projection, ...] = ("gate", "up")
_NAMES: dict[str, tuple[Projection, ...]] = {
    "q_proj": ("q",), "wq": ("q",), "query": ("q",), "q": ("q",),
    "k_proj": ("k",), "wk": ("k",), "key": ("k",), "k": ("k",),
    "v_proj": ("v",), "wv": ("v",), "value": ("v",), "v": ("v",),
    "o_proj": ("o",), "wo": ("o",), "out_proj": ("o",), "output_proj": ("o",), "dense": ("o",), "linear_proj": ("o",),
    "attention_dense": ("o",), "o": ("o",),
    "qkv_proj": _QKV, "wqkv": _QKV, "w_pack": _QKV, "c_attn": _QKV, "query_key_value": _QKV, "linear_qkv": _QKV,
    "attention_qkv": _QKV, "attention": (*_QKV, "o"), "attn": (*_QKV, "o"),
    "gate_proj": ("gate",), "w1": ("gate",), "gate": ("gate",), "up_proj": ("up",), "w3": ("up",), "up": ("up",),
    "gate_up_proj": _INTO_MLP, "linear_fc1": _INTO_MLP, "mlp_fc1": _INTO_MLP, "fc1": _INTO_MLP,
    "dense_h_to_4h": _INTO_MLP,
    "down_proj": ("down",), "w2": ("down",), "down": ("down",), "linear_fc2": ("down",), "mlp_fc2": ("down",),
    "fc2": ("down",), "dense_4h_to_h": ("down",), "mlp": (*_INTO_MLP, "down"),
}  # fmt: skip
"""As published models and training stacks name them."""
ALL: tuple[Projection, ...] = (*_QKV, "o", *_INTO_MLP, "down")


def projections(said: Any) -> Any:
    """Those that a setting names, of a list or its text; all where it names none, such as ``all-linear``."""
    if isinstance(said, list | tuple) and {*said} <= {*ALL}:
        return tuple(said)
    words = re.findall(r"[a-z0-9_-]+", str(said).casefold())
    named = {one for word in words for one in _NAMES.get(word, ())}
    return tuple(one for one in ALL if one in named) or ALL


Projections = Annotated[tuple[Projection, ...], BeforeValidator(projections)]


def _shapes(model: Architecture, adapted: tuple[Projection, ...]) -> list[tuple[float, float, float]]:
    """Width in, width out and number of each matrix that has an adapter, mean over layers; all where none is said."""
    width, mlp, each = model.d_model or 0, model.d_ff or 0, model.expert_d_ff or 0
    queries, keys = ((count or 0) * (model.head_dim or 0) for count in (model.heads, model.kv_heads))
    of_attention: dict[str, tuple[float, float]] = {
        "q": (width, queries), "k": (width, keys), "v": (width, keys), "o": (queries, width),
    }  # fmt: skip
    adapted = adapted or ALL
    found: list[tuple[float, float, float]] = [(*of_attention[name], 1.0) for name in adapted if name in of_attention]
    routed = model.moe_layers / model.layers if model.layers else 0.0
    experts = model.experts + model.shared_experts
    for name in adapted:
        if name in ("up", "down") or (name == "gate" and model.gated_mlp):
            for hidden, count in ((mlp, 1 - routed), (each, routed * experts)):
                found.append((width, hidden, count) if name != "down" else (hidden, width, count))
    return found


def adapter_parameters(model: Architecture, rank: int, adapted: tuple[Projection, ...]) -> float:
    """Of all layers: two matrices of this rank beside each that is adapted."""
    return (model.layers or 0) * rank * sum((into + out) * count for into, out, count in _shapes(model, adapted))


def adapter_width(model: Architecture, adapted: tuple[Projection, ...]) -> float:
    """Elements of a token that adapters of a layer read and write forward: the input of each once more; its output
    written, scaled and added to that of the frozen matrix. Of experts, those that a token visits."""
    visited = model.experts_per_token + model.shared_experts
    shares = {True: visited / (model.experts + model.shared_experts) if model.is_moe else 1.0, False: 1.0}
    return sum((into + 4 * out) * count * shares[count > 1] for into, out, count in _shapes(model, adapted))
