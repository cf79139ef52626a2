"""What of nanotron no table says: experts of its Qwen, and what it refuses (``models/qwen.py``, ``config.py``)."""

from collections.abc import Iterator, Mapping
from typing import Any

_MODEL = "model.model_config."
_MIXTURE = f"{_MODEL}moe_config."
_ATTENTION, _ENGINE = f"{_MODEL}_attn_implementation", "parallelism.pp_engine"
_WIDTH, _SHARED_WIDTH, _TOP = 1408, 5632, 2
"""Defaults of ``moe_intermediate_size``, ``shared_expert_intermediate_size`` and ``top_k`` (``models_config.py``)."""


def configured(settings: Mapping[str, object]) -> dict[str, object]:
    """The section of the model with what it leaves to its code: Starcoder2's width, and one key for all queries."""
    found: dict[str, object] = {}
    width = settings.get(f"{_MODEL}hidden_size")
    if settings.get(f"{_MODEL}is_starcoder2_config") is True and isinstance(width, int):
        found["intermediate_size"] = 4 * width
    if settings.get(f"{_MODEL}multi_query") is True:
        found["num_key_value_heads"] = 1
    return found


def model_fields(settings: Mapping[str, object]) -> dict[str, object]:
    """A window of all layers, and experts; raises ValueError where only some layers have them."""
    fields = {"sliding_window": settings.get(f"{_MODEL}sliding_window_size")}
    if (experts := settings.get(f"{_MIXTURE}num_experts")) is None:
        return fields
    layers = settings.get(f"{_MIXTURE}layers", [-1])
    if layers not in ([-1], [*range(int(str(settings.get(f"{_MODEL}num_hidden_layers", 0))))]):
        raise ValueError(f"{_MIXTURE}layers must be all layers ([-1])")
    width = int(str(settings.get(f"{_MIXTURE}moe_intermediate_size", _WIDTH)))
    shared = int(str(settings.get(f"{_MIXTURE}shared_expert_intermediate_size", _SHARED_WIDTH)))
    has_shared = settings.get(f"{_MIXTURE}enable_shared_expert") is True
    return fields | {
        "experts": experts,
        "experts_per_token": settings.get(f"{_MIXTURE}top_k", _TOP),
        "expert_d_ff": width,
        "shared_experts": round(shared / max(width, 1)) if has_shared else 0,
    }


def refusals(settings: Mapping[str, object], wanted: Mapping[str, Any]) -> Iterator[str]:
    """Why it does not run these degrees beside its settings."""
    configures = any(key.startswith(_MODEL) for key in settings)
    rings = settings.get(f"{_MODEL}is_qwen2_config") is True and "ring" in str(settings.get(_ATTENTION))
    if wanted["seq"] > 1 and configures and not rings:
        yield f"it has context parallelism in its Qwen alone, with {_ATTENTION}: llama3_ring_attention"
    in_turn, parts = str(settings.get(_ENGINE)).casefold() == "1f1b", wanted["microbatches"]
    if in_turn and parts is not None and parts < wanted["stage"] - 1:
        yield f"{parts} microbatches are too few for {wanted['stage']} stages with {_ENGINE}: 1f1b"
