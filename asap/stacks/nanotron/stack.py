"""What of nanotron no table says: a window, and what it refuses (``config.py``)."""

from collections.abc import Iterator, Mapping
from typing import Any

_MODEL = "model.model_config."
_ATTENTION, _ENGINE = f"{_MODEL}_attn_implementation", "parallelism.pp_engine"


def model_fields(settings: Mapping[str, object]) -> dict[str, object]:
    """A window of all layers."""
    return {"sliding_window": settings.get(f"{_MODEL}sliding_window_size")}


def refusals(settings: Mapping[str, object], wanted: Mapping[str, Any]) -> Iterator[str]:
    """Why it does not run these degrees beside its settings."""
    configures = any(key.startswith(_MODEL) for key in settings)
    rings = settings.get(f"{_MODEL}is_qwen2_config") is True and "ring" in str(settings.get(_ATTENTION))
    if wanted["seq"] > 1 and configures and not rings:
        yield f"it has context parallelism in its Qwen alone, with {_ATTENTION}: llama3_ring_attention"
    in_turn, parts = str(settings.get(_ENGINE)).casefold() == "1f1b", wanted["microbatches"]
    if in_turn and parts is not None and parts < wanted["stage"] - 1:
        yield f"{parts} microbatches are too few for {wanted['stage']} stages with {_ENGINE}: 1f1b"
