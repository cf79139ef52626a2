"""The architecture that MaxText settings describe."""

import difflib
import math
from collections.abc import Mapping
from typing import Any

from asap.core.errors import ConfigError, InsufficientEvidenceError
from asap.core.text import plain
from asap.experiments.maxtext.settings import (
    OVERRIDE,
    TABLE,
    MaxTextSettings,
    SettingLayer,
    model_name_of,
    note_on_own_keys,
)
from asap.experiments.maxtext.workload import mean_attention_parameters
from asap.models import Architecture, architecture_from_row, find_architecture, known_architectures
from asap.stacks.spec import word_keys

_ROW_KEYS = {field: word_keys(words)[0] for field, words in TABLE.model.shapes.items()}
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
    model, sources, notes = _without_predicted_tokens(settings)
    if layers := settings.whole("mtp_num_layers"):
        model = model.model_copy(update={"mtp_layers": layers})
        sources |= {"model.mtp_layers": settings.source("mtp_num_layers")}
    return model, sources, notes


def _without_predicted_tokens(settings: MaxTextSettings) -> tuple[Architecture, dict[str, str], tuple[str, ...]]:
    name = model_name_of(settings.text("model_name"))
    notes = note_on_own_keys(settings)
    if name is None or settings.of_model:
        _check_block(settings)
        model, sources, more = _described(settings, name)
        return model, sources, (*notes, *more, *_unnamed(settings, name), *_edited(name, model), *_overruled(settings))
    place = settings.source("model_name")
    known = find_architecture(name)
    if known is None:
        raise _unknown(name, place)
    sources = {"model": f"{place} (MaxText's configuration of the model)"}
    changed = _changed(settings, known)
    file = settings.only(lambda key, layer: layer is SettingLayer.FILE and key in _ROW_KEYS.values())
    ignored = tuple(f"{file.source(key)} does not count: model_name={name} wins" for key in _differing(file, known))
    sources |= {f"model.{field}": OVERRIDE for field in changed}
    return known.model_copy(update=changed), sources, (*notes, *ignored)


def _differing(settings: MaxTextSettings, known: Architecture) -> list[str]:
    """Keys whose value is not that of a model."""
    described, _, _ = _described(settings, known.name)
    fields = [field for field, key in _ROW_KEYS.items() if key in settings]
    return [_ROW_KEYS[field] for field in fields if getattr(described, field) not in (None, getattr(known, field))]


_UNNAMED = "no model is named and no shape is said"


def _unnamed(settings: MaxTextSettings, name: str | None) -> tuple[str, ...]:
    if name is not None or any(map(settings.said, _SHAPES)):
        return ()
    layers, width = settings.get("base_num_decoder_layers"), settings.get("base_emb_dim")
    return (f"{_UNNAMED}: MaxText takes its own {layers} layers of {width}",)


def _overruled(settings: MaxTextSettings) -> tuple[str, ...]:
    return tuple(f"{place} does not count: the file of the model wins" for place in settings.overruled)


def _edited(name: str | None, model: Architecture) -> tuple[str, ...]:
    """A note where the file of a model that MaxText ships says something else than MaxText's."""
    known = find_architecture(name) if name else None
    if known is None:
        return ()
    pairs = [(field, getattr(model, field), getattr(known, field)) for field in _ROW_KEYS]
    parts = [
        f"{field} {ours} instead of {theirs}"
        for field, ours, theirs in pairs
        if None not in (ours, theirs) and ours != theirs
    ]
    return (f"the file of {plain(name, 60)} is not MaxText's own: {', '.join(parts)}",) if parts else ()


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


def _changed(settings: MaxTextSettings, known: Architecture) -> dict[str, Any]:
    """Fields of a named model that overrides change, which MaxText allows with ``override_model_config`` only."""
    overridden = settings.only(lambda _, layer: layer is SettingLayer.OVERRIDE)
    described, _, _ = _described(overridden, known.name)
    changed = {
        field: getattr(described, field)
        for field, key in _ROW_KEYS.items()
        if key in overridden and getattr(described, field) not in (None, getattr(known, field))
    }
    if changed and not settings.flag("override_model_config"):
        keys = ", ".join(_ROW_KEYS[field] for field in changed)
        raise ConfigError(
            f"{keys} contradicts model_name={known.name}",
            where=overridden.where(_ROW_KEYS[next(iter(changed))]),
            hint="MaxText wants override_model_config=true",
        )
    return changed


def _described(settings: MaxTextSettings, name: str | None) -> tuple[Architecture, dict[str, str], tuple[str, ...]]:
    try:
        model = architecture_from_row(_row(settings, name))
    except InsufficientEvidenceError as error:
        return Architecture(name=name), {}, (f"the architecture is unknown: {error.message}",)
    except ConfigError as error:
        raise ConfigError(error.message, where=settings.source("decoder_block")) from error
    unsaid = {field: None for field in ("kv_heads", "head_dim") if _ROW_KEYS[field] not in settings}
    model = model.model_copy(
        update={
            **unsaid,
            "name": name,
            "attention_parameters": mean_attention_parameters(settings),
            "learned_positions": settings.positive("trainable_position_size") or 0,
            "moe_every": max(model.moe_every, settings.positive("interleave_moe_layer_step") or 1),
        }
    )
    keys = {field: key for field, key in _ROW_KEYS.items() if key in settings and getattr(model, field) is not None}
    return model, {f"model.{field}": settings.source(key) for field, key in keys.items()}, ()


def _row(settings: MaxTextSettings, name: str | None) -> dict[str, Any]:
    scales = _scales(settings)
    experts = settings.positive("num_experts") or 1
    row: dict[str, Any] = {
        "model": name or "MaxText",
        "n_layers": _scaled(settings.positive("base_num_decoder_layers"), scales["layers"]),
        "d_model": _scaled(settings.positive("base_emb_dim"), scales["d_model"]),
        "d_ff": _scaled(settings.positive("base_mlp_dim"), scales["d_ff"]),
        "n_heads": _scaled(settings.positive("base_num_query_heads"), scales["heads"]),
        "n_kv_heads": _scaled(settings.positive("base_num_kv_heads"), scales["heads"]),
        "head_dim": settings.positive("head_dim"),
        "vocab": settings.positive("vocab_size"),
        "sliding_window": _window(settings),
        "activation": str(settings.get("mlp_activations", "linear")),
        "decoder_block": settings.text("decoder_block"),
        "tied_embeddings": settings.flag("logits_via_embedding"),
    }
    if experts > 1:
        row["n_experts"] = experts
        row["top_k"] = settings.positive("num_experts_per_tok")
        width = settings.positive("base_moe_mlp_dim" if _has_own(settings, "base_moe_mlp_dim") else "base_mlp_dim")
        row["moe_d_ff"] = _scaled(width, scales["d_ff"])
        row["n_shared_experts"] = settings.whole("shared_experts") or 0 if _has_own(settings, "shared_experts") else 0
        row["first_dense_layers"] = settings.whole("first_num_dense_layers") or 0
    if settings.text("attention_type") == "mla":
        ranks = ("q_lora_rank", "kv_lora_rank", "qk_nope_head_dim", "qk_rope_head_dim", "v_head_dim")
        row |= {key: settings.positive(key) for key in ranks}
    return row


def _has_own(settings: MaxTextSettings, key: str) -> bool:
    """Whether experts go by a key of their own; a base.yml of 2025 has it for DeepSeek's, whatever the model is."""
    return (
        settings.text("decoder_block") not in TABLE.names["experts_as_wide_as_dense"]
        or settings.layer(key) is not SettingLayer.BASE
    )


def _window(settings: MaxTextSettings) -> int | None:
    """Tokens that a local layer attends to; only some blocks, and some kinds of attention, have local layers."""
    kind = settings.text("attention_type")
    if kind == "chunk":
        return settings.positive("chunk_attn_window_size")
    local = kind == "local_sliding" or settings.text("decoder_block") in TABLE.names["with_local_layers"]
    return settings.positive("sliding_window_size") if local else None


def _scales(settings: MaxTextSettings) -> dict[str, int]:
    """Factors of ``global_parameter_scale`` (``get_individual_scales`` in MaxText's configs/types.py)."""
    scale = settings.positive("global_parameter_scale") or 1
    power = int(math.log2(scale))
    if 2**power != scale:
        raise ConfigError("must be a power of two", where=settings.source("global_parameter_scale"))
    base, rest = divmod(power, 3)
    width = 2 ** (base + (rest > 0))
    return {"layers": 2**base, "d_model": 2 ** (base + (rest > 1)), "d_ff": width, "heads": width}


def _scaled(value: int | None, factor: int) -> int | None:
    return None if value is None else value * factor
