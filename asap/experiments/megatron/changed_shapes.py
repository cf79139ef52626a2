"""A model that is named, with shapes that a program changes."""

from collections.abc import Mapping
from typing import Any

from pydantic import ValidationError

from asap.core.text import plain
from asap.experiments.files.documents import validation_reason
from asap.experiments.files.python_literals import UNKNOWN
from asap.experiments.named_model import read_named_model
from asap.models import Architecture

SHAPES = {
    "num_layers": "layers", "hidden_size": "d_model", "ffn_hidden_size": "d_ff", "num_attention_heads": "heads",
    "num_query_groups": "kv_heads", "kv_channels": "head_dim", "vocab_size": "vocab", "num_moe_experts": "experts",
    "moe_router_topk": "experts_per_token", "moe_ffn_hidden_size": "expert_d_ff",
    "share_embeddings_and_output_weights": "tied_embeddings", "gated_linear_unit": "gated_mlp",
    "qk_layernorm": "qk_norm",
}  # fmt: skip


def read_changed_model(name: str, config: Mapping[str, Any]) -> tuple[Architecture, tuple[str, ...]]:
    """The model of that name with the shapes that a configuration changes, and notes; without any where they leave it
    open."""
    model, notes = read_named_model(name)
    changed = {field: config[key] for key, field in SHAPES.items() if config.get(key) is not None}
    changed = {field: value for field, value in changed.items() if value != getattr(model, field)}
    if not changed:
        return model, notes
    if UNKNOWN in changed.values() or model.layers is None:
        return Architecture(), (f"shapes of {plain(name, 60)} are changed: say the whole model",)
    listed = ", ".join(f"{field}={plain(value, 20)}" for field, value in changed.items())
    if "head_dim" not in changed and {"d_model", "heads"} & changed.keys():
        width, heads = changed.get("d_model", model.d_model), changed.get("heads", model.heads)
        changed["head_dim"] = width // heads if width and heads else None
    if "heads" in changed and "kv_heads" not in changed and model.kv_heads == model.heads:
        changed["kv_heads"] = changed["heads"]
    try:
        whole = Architecture.model_validate({**model.model_dump(), **changed})
    except ValidationError as error:
        return Architecture(), (f"the model is unknown: {plain(name, 60)} with {listed} {validation_reason(error)}",)
    return whole, (*notes, f"the model is {plain(name, 60)} with {listed}")
