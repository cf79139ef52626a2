"""What MaxText can build and an Architecture cannot say: refused by name, or named where it hardly counts."""

import difflib

from asap.core.errors import ConfigError
from asap.core.text import plain
from asap.experiments.maxtext.settings import MaxTextSettings

_PER_LAYER, _COMPRESSED = "an embedding in each layer", "compressed attention"
_STREAMS = "several residual streams (hyper-connections)"
_NARROW = "experts that are narrower than the residual stream"
_BLOCKS = {
    "deepseek4": _COMPRESSED,
    "gemma4_small": _PER_LAYER,
    "qwen3_custom_moe": _NARROW,
    "simple": "a block without attention",
    "simple_mlp": "a block without attention",
}
_KNOWN_BLOCKS = (
    "default", "deepseek", "envy", "gemma", "gemma2", "gemma3", "gemma4", "gpt3", "gpt_oss", "llama2", "llama4",
    "mistral", "mixtral", "olmo3", "qwen2", "qwen3", "qwen3_5", "qwen3_moe", "qwen3_next",
)  # fmt: skip
"""Values of ``decoder_block`` (``DecoderBlockType`` in MaxText's common_types.py, commit e591f30c)."""

_MODELS = {
    "deepseek-custom": _STREAMS,
    "deepseek4-284b": _COMPRESSED,
    "deepseek4-tiny": _COMPRESSED,
    "gemma4-e2b": _PER_LAYER,
    "gemma4-e4b": _PER_LAYER,
    "qwen3-custom-30b-a3b": _NARROW,
}
"""Models of MaxText whose file has such a part."""

_ATTENTION = {"compressed": _COMPRESSED, "block_diffusion": "block-diffusion attention"}
_SIZES = {
    "hidden_size_per_layer_input": (0, _PER_LAYER),
    "num_kv_shared_layers": (0, "layers that share keys and values with others"),
    "mhc_expansion_rate": (1, _STREAMS),
}


def refuse_model(name: str, place: str) -> None:
    """Refuse a model of MaxText that is known not to be expressible.

    Raises:
        ConfigError: with what it has.
    """
    if reason := _MODELS.get(name):
        raise _error(name, reason, place)


def refuse_unsupported(settings: MaxTextSettings, name: str | None) -> None:
    """Refuse settings that make a model of other parts.

    Raises:
        ConfigError: with the part, or with the nearest ``decoder_block`` where there is none of that name.
    """
    block = settings.text("decoder_block") or ""
    if block in _BLOCKS:
        raise _error(name or "the model", _BLOCKS[block], settings.source("decoder_block"))
    if block not in _KNOWN_BLOCKS:
        near = difflib.get_close_matches(block, _KNOWN_BLOCKS, n=2, cutoff=0.5) or _KNOWN_BLOCKS
        reason = f"MaxText has no decoder_block {plain(block, 40)!r}"
        raise ConfigError(reason, where=settings.origin("decoder_block"), hint=f"nearest: {', '.join(near)}")
    for key, reason in _parts(settings):
        raise _error(name or "the model", reason, settings.source(key))


def _parts(settings: MaxTextSettings) -> list[tuple[str, str]]:
    found = [
        ("attention_type", reason) for kind, reason in _ATTENTION.items() if settings.get("attention_type") == kind
    ]
    found += [(key, reason) for key, (none, reason) in _SIZES.items() if (settings.positive(key) or 0) > none]
    if settings.flag("moba"):
        found.append(("moba", "mixture of block attention"))
    if settings.get("engram_layers"):
        found.append(("engram_layers", "n-gram embeddings in layers"))
    for key in ("student_overrides", "teacher_overrides"):
        if settings.get(key):
            found.append((key, "a student and a teacher"))
    width = settings.positive("moe_expert_input_dim")
    if width and width != settings.positive("base_emb_dim"):
        found.append(("moe_expert_input_dim", _NARROW))
    return found


def not_counted(settings: MaxTextSettings) -> tuple[str, ...]:
    """Notes on parts that are left out of an architecture."""
    notes = []
    if settings.flag("use_indexer"):
        notes.append("use_indexer: the indexer of sparse attention is not counted, and attention is taken as full")
    if settings.flag("use_multimodal"):
        notes.append("use_multimodal: only the language model is read")
    return tuple(notes)


def _error(name: str, reason: str, place: str) -> ConfigError:
    return ConfigError(f"{plain(name, 80)} has {reason}, which cannot be expressed", where=place)
