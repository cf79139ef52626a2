"""The architecture that MaxText settings describe."""

import difflib
from collections.abc import Mapping
from typing import Any

from asap.core.errors import ConfigError, InsufficientEvidenceError
from asap.core.text import plain
from asap.experiments.maxtext.loading import model_name_of
from asap.experiments.maxtext.settings import OVERRIDE, TABLE, MaxTextSettings, SettingLayer, note_on_own_keys
from asap.models import Architecture, architecture_from_row, find_architecture, known_architectures
from asap.models.parameters import linear_attention_parameters

_ROW_KEYS = {field: words[0].keys[0] for field, words in TABLE.model.shapes.items()}
_SHAPES = ("base_num_decoder_layers", "base_emb_dim", "base_mlp_dim", "base_num_query_heads", "global_parameter_scale")


def over_model(values: Mapping[str, Any]) -> list[str]:
    """Shapes that a log says over those of its model, as overrides: it prints what ran."""
    kept = _ROW_KEYS.values() if values.get("override_model_config") is True else ()
    return [f"{key}={values[key]}" for key in kept if values.get(key) is not None]


def architecture_of(settings: MaxTextSettings) -> tuple[Architecture, dict[str, str], tuple[str, ...]]:
    """The model, where each of its fields came from, and what a reader should know.

    A ``model_name`` stands for a file that wins over the configuration. Where that file was found, it is part of the
    settings; else the model is the one that MaxText ships under this name.

    Raises:
        ConfigError: the settings make no model, no file and no model of MaxText has the name, or the model has parts
            that cannot be expressed.
    """
    name = model_name_of(settings.text("model_name"))
    known = find_architecture(name) if name else None
    notes = note_on_own_keys(settings)
    if name is None or settings.of_layer(SettingLayer.MODEL):
        _check_block(settings)
        model, more = _described(settings, name)
        sources = {f"model.{field}": settings.source(key) for field, key in _ROW_KEYS.items() if key in settings}
        notes += (*more, *_unnamed(settings, name), *_edited(model, known))
        notes += tuple(f"{place} does not count: the file of the model wins" for place in settings.overruled)
    elif known is not None:
        ignored = _otherwise(settings, SettingLayer.FILE, known)
        notes += tuple(f"{settings.source(_ROW_KEYS[one])} does not count: model_name={name} wins" for one in ignored)
        changed = _otherwise(settings, SettingLayer.OVERRIDE, known)
        _check_changes(settings, changed, known)
        model = known.model_copy(update=changed)
        sources = {"model": f"{settings.source('model_name')} (MaxText's configuration of the model)"}
        sources |= {f"model.{field}": OVERRIDE for field in changed}
    else:
        raise _unknown(name, settings.source("model_name"))
    if layers := settings.whole("mtp_num_layers"):
        model = model.model_copy(update={"mtp_layers": layers})
        sources |= {"model.mtp_layers": settings.source("mtp_num_layers")}
    return model, sources, notes


def _otherwise(settings: MaxTextSettings, layer: SettingLayer, known: Architecture) -> dict[str, Any]:
    """Fields that a layer of the settings says otherwise than a model has them."""
    own = settings.of_layer(layer)
    described, _ = _described(own, known.name)
    said = {field: getattr(described, field) for field, key in _ROW_KEYS.items() if key in own}
    return {field: value for field, value in said.items() if value not in (None, getattr(known, field))}


def _check_changes(settings: MaxTextSettings, changed: Mapping[str, Any], known: Architecture) -> None:
    """Raise ConfigError where overrides change a named model, which MaxText allows with a setting only."""
    if changed and not settings.flag("override_model_config"):
        keys = [_ROW_KEYS[field] for field in changed]
        reason = f"{', '.join(keys)} contradicts model_name={known.name}"
        raise ConfigError(reason, where=settings.where(keys[0]), hint="MaxText wants override_model_config=true")


def _unnamed(settings: MaxTextSettings, name: str | None) -> tuple[str, ...]:
    if name is not None or any(map(settings.said, _SHAPES)):
        return ()
    shapes = f"{settings.get('base_num_decoder_layers')} layers of {settings.get('base_emb_dim')}"
    return (f"no model is named and no shape is said: MaxText takes its own {shapes}",)


def _edited(model: Architecture, known: Architecture | None) -> tuple[str, ...]:
    """A note where the file of a model that MaxText ships says something else than MaxText's."""
    pairs = [(field, getattr(model, field), getattr(known, field)) for field in _ROW_KEYS] if known else []
    parts = [f"{name} {ours} instead of {one}" for name, ours, one in pairs if None not in (ours, one) and ours != one]
    return (f"the file of {plain(model.name, 60)} is not MaxText's own: {', '.join(parts)}",) if parts else ()


def _check_block(settings: MaxTextSettings) -> None:
    """Raise ConfigError where MaxText has no ``decoder_block`` of that name, with the nearest."""
    block, known = settings.text("decoder_block") or "", TABLE.names["decoder_blocks"]
    if block not in known:
        near = difflib.get_close_matches(block, known, n=2, cutoff=0.5) or known
        reason = f"MaxText has no decoder_block {plain(block, 40)!r}"
        raise ConfigError(reason, where=settings.where("decoder_block"), hint=f"nearest: {', '.join(near)}")


def _unknown(name: str, place: str) -> ConfigError:
    near = difflib.get_close_matches(name, known_architectures(), n=3, cutoff=0.5)
    hint = f"put its shapes into models/{plain(name, 60)}.yml beside the configuration"
    hint = f"nearest: {', '.join(near)}; or {hint}" if near else hint
    return ConfigError(f"the model {plain(name, 60)} is not known, and has no file", where=place, hint=hint)


def _described(settings: MaxTextSettings, name: str | None) -> tuple[Architecture, tuple[str, ...]]:
    row = _row(settings, name)
    try:
        model = architecture_from_row(row)
    except InsufficientEvidenceError as error:
        return Architecture(name=name), (f"the architecture is unknown: {error.message}",)
    except ConfigError as error:
        raise ConfigError(error.message, where=settings.source("decoder_block")) from error
    own: dict[str, Any] = {field: None for field in ("kv_heads", "head_dim") if _ROW_KEYS[field] not in settings}
    own |= {
        "name": name,
        "attention_parameters": _mean_attention_parameters(settings),
        "learned_positions": settings.positive("trainable_position_size") or 0,
        "moe_every": max(model.moe_every, settings.positive("interleave_moe_layer_step") or 1),
    }
    return model.model_copy(update=own), ()


_COLUMNS = {
    "n_layers": "base_num_decoder_layers", "d_model": "base_emb_dim", "d_ff": "base_mlp_dim", "vocab": "vocab_size",
    "n_heads": "base_num_query_heads", "n_kv_heads": "base_num_kv_heads", "head_dim": "head_dim",
}  # fmt: skip
_LATENT = ("q_lora_rank", "kv_lora_rank", "qk_nope_head_dim", "qk_rope_head_dim", "v_head_dim")


def _row(settings: MaxTextSettings, name: str | None) -> dict[str, Any]:
    """The model as a row of published ones, its shapes by their scale."""
    row: dict[str, Any] = {column: settings.positive(key) for column, key in _COLUMNS.items()}
    if (experts := settings.positive("num_experts") or 1) > 1:
        width = "base_moe_mlp_dim" if _has_own(settings, "base_moe_mlp_dim") else "base_mlp_dim"
        shared = settings.whole("shared_experts") if _has_own(settings, "shared_experts") else 0
        row |= {"n_experts": experts, "top_k": settings.positive("num_experts_per_tok")}
        row |= {"moe_d_ff": settings.positive(width), "n_shared_experts": shared or 0}
        row |= {"first_dense_layers": settings.whole("first_num_dense_layers") or 0}
    if settings.text("attention_type") == "mla":
        row |= {key: settings.positive(key) for key in _LATENT}
    row |= {column: row[column] and row[column] * by for column, by in _scales(settings).items() if column in row}
    return row | {
        "model": name or "MaxText",
        "sliding_window": _window(settings),
        "activation": str(settings.get("mlp_activations", "linear")),
        "decoder_block": settings.text("decoder_block"),
        "tied_embeddings": settings.flag("logits_via_embedding"),
    }


def _has_own(settings: MaxTextSettings, key: str) -> bool:
    """Whether experts go by a key of their own; a base.yml of 2025 has it for DeepSeek's, whatever the model is."""
    alike = settings.text("decoder_block") in TABLE.names["experts_as_wide_as_dense"]
    return not alike or settings.layer(key) is not SettingLayer.DEFAULT


def _window(settings: MaxTextSettings) -> int | None:
    """Tokens that a local layer attends to; only some blocks, and some kinds of attention, have local layers."""
    kind = settings.text("attention_type")
    if kind == "chunk":
        return settings.positive("chunk_attn_window_size")
    local = kind == "local_sliding" or settings.text("decoder_block") in TABLE.names["with_local_layers"]
    return settings.positive("sliding_window_size") if local else None


_WIDER = ("d_ff", "moe_d_ff", "n_heads", "n_kv_heads")


def _scales(settings: MaxTextSettings) -> dict[str, int]:
    """Factors of ``global_parameter_scale`` (``get_individual_scales`` in MaxText's configs/types.py)."""
    scale = settings.positive("global_parameter_scale") or 1
    power = scale.bit_length() - 1
    if 2**power != scale:
        raise ConfigError("must be a power of two", where=settings.source("global_parameter_scale"))
    base, rest = divmod(power, 3)
    width = 1 << (base + (rest > 0))
    return {"n_layers": 1 << base, "d_model": 1 << (base + (rest > 1)), **dict.fromkeys(_WIDER, width)}


_GLOBAL_EVERY = {"gemma4": 6, "qwen3_next": 4, "qwen3_5": 4}
_OF_ATTENTION = ("base_emb_dim", "base_num_query_heads", "base_num_kv_heads", "head_dim")
_LINEAR = ("gdn_num_key_heads", "gdn_key_head_dim", "gdn_num_value_heads", "gdn_value_head_dim", "gdn_conv_kernel_dim")


def _mean_attention_parameters(settings: MaxTextSettings) -> int | None:
    """Parameters of attention in a layer, averaged over local and global ones; ``None`` where all are alike."""
    block, layers = settings.text("decoder_block") or "", settings.positive("base_num_decoder_layers")
    if block not in _GLOBAL_EVERY or layers is None:
        return None
    width, heads, kv_heads, dim = (settings.positive(key) or 0 for key in _OF_ATTENTION)
    if block == "gemma4":
        pairs = settings.positive("global_num_kv_heads") or kv_heads
        shared = 1 if settings.flag("share_kv_projections") else 2
        full = width * (settings.positive("global_head_dim") or dim) * (2 * heads + shared * pairs)
        local = width * dim * (2 * heads + 2 * kv_heads)
    else:
        local = linear_attention_parameters(width, *(settings.positive(key) or 0 for key in _LINEAR))
        full = width * dim * (3 * heads + 2 * kv_heads)
    wide = layers // _GLOBAL_EVERY[block]
    return round((local * (layers - wide) + full * wide) / layers)
