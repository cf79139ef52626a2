"""The architecture that MaxText settings describe."""

import difflib
from collections.abc import Mapping
from typing import Any

from asap.core.errors import ConfigError
from asap.core.text import plain
from asap.experiments.files.documents import validated
from asap.experiments.maxtext.loading import model_name_of
from asap.experiments.maxtext.settings import DEFAULT, OVERRIDE, TABLE, MaxTextSettings, SettingLayer, note_on_own_keys
from asap.models import Architecture, find_architecture, known_architectures
from asap.models.parameters import linear_attention_parameters
from asap.stacks.shapes import shapes_of
from asap.stacks.stack_settings import StackSettings

_ROW_KEYS = {field: words[-1].keys[0] for field, words in TABLE.model.shapes.items()}
_ROW_KEYS |= dict.fromkeys(("parallel_block", "qk_norm"), "decoder_block")
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
        model = _described(settings, name)
        sources = {f"model.{field}": settings.source(key) for field, key in _ROW_KEYS.items() if key in settings}
        notes += (*_unnamed(settings, name), *_edited(model, known))
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
    described = _described(own, known.name)
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


def _described(settings: MaxTextSettings, name: str | None) -> Architecture:
    """The model of the settings, its shapes by their scale."""
    block = settings.text("decoder_block") or ""
    alike = _OF_EXPERTS if block in TABLE.names["experts_as_wide_as_dense"] else ()
    said = {
        key: value
        for key, value in settings.items()
        if (isinstance(value, bool) or value not in (0, -1))
        and not (key in alike and settings.layer(key) is SettingLayer.DEFAULT)
    }
    fields, _ = shapes_of(TABLE.model, StackSettings(said, DEFAULT, settings.places), block)
    fields |= {field: fields[field] * by for field, by in _scales(settings).items() if field in fields}
    if block == "gemma2" and "layers" in fields:
        fields["layers"] *= 2  # a local and a global one
    if block == "gemma4" and "experts" in fields:
        fields["shared_experts"] = fields["d_ff"] // fields["expert_d_ff"]
    if block == "llama4" and "experts" in fields and fields["d_ff"] != fields["expert_d_ff"]:
        fields["moe_every"] = max(fields.get("moe_every", 1), 2)
    fields |= {"name": name, "attention_parameters": _mean_attention_parameters(settings)}
    return validated(Architecture, fields, settings.source("decoder_block"))


_OF_EXPERTS = ("base_moe_mlp_dim", "shared_experts")
"""What a base.yml of 2025 has for DeepSeek's experts, whatever the model is."""
_WIDER = ("d_ff", "expert_d_ff", "heads", "kv_heads")


def _scales(settings: MaxTextSettings) -> dict[str, int]:
    """Factors of ``global_parameter_scale`` (``get_individual_scales`` in MaxText's configs/types.py)."""
    scale = settings.positive("global_parameter_scale") or 1
    power = scale.bit_length() - 1
    if 2**power != scale:
        raise ConfigError("must be a power of two", where=settings.source("global_parameter_scale"))
    base, rest = divmod(power, 3)
    width = 1 << (base + (rest > 0))
    return {"layers": 1 << base, "d_model": 1 << (base + (rest > 1)), **dict.fromkeys(_WIDER, width)}


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
