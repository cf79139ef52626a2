"""The architecture that MaxText settings describe."""

import math
from typing import Any

from asap.core.errors import AsapError, ConfigError, InsufficientEvidenceError
from asap.experiments.maxtext_settings import OVERRIDE, Settings
from asap.models import Architecture, architecture_from_row, find_architecture

_ROW_KEYS = {
    "layers": "base_num_decoder_layers",
    "d_model": "base_emb_dim",
    "d_ff": "base_mlp_dim",
    "heads": "base_num_query_heads",
    "kv_heads": "base_num_kv_heads",
    "head_dim": "head_dim",
    "vocab": "vocab_size",
    "gated_mlp": "mlp_activations",
    "tied_embeddings": "logits_via_embedding",
    "parallel_block": "decoder_block",
    "qk_norm": "decoder_block",
    "learned_positions": "trainable_position_size",
    "experts": "num_experts",
    "experts_per_token": "num_experts_per_tok",
    "expert_d_ff": "base_moe_mlp_dim",
    "shared_experts": "shared_experts",
    "leading_dense_layers": "first_num_dense_layers",
    "moe_every": "interleave_moe_layer_step",
    "sliding_window": "sliding_window_size",
    "q_lora_rank": "q_lora_rank",
    "kv_lora_rank": "kv_lora_rank",
    "qk_nope_head_dim": "qk_nope_head_dim",
    "qk_rope_head_dim": "qk_rope_head_dim",
    "v_head_dim": "v_head_dim",
}


def architecture_of(settings: Settings) -> tuple[Architecture, dict[str, str], tuple[str, ...]]:
    """The model, where each of its fields came from, and what a reader should know.

    A ``model_name`` stands for a file of MaxText that wins over the configuration; where ASAP does not know it,
    only what the configuration says is taken, and the rest is unknown.

    Raises:
        ConfigError: the settings make no model.
    """
    name = settings.text("model_name")
    if name is None or name == "default":
        return _described(settings, None, settings)
    known = find_architecture(name)
    if known is None:
        model, sources, notes = _described(settings, name, settings.said())
        return model, sources, (*notes, f"the model {name!r} is not known: only what the file says of it is taken")
    sources = {"model": f"{settings.source('model_name')} (MaxText's configuration of the model)"}
    changed = _changed(settings, known)
    return known.model_copy(update=changed), sources | {f"model.{field}": OVERRIDE for field in changed}, ()


def _changed(settings: Settings, known: Architecture) -> dict[str, Any]:
    """Fields of a named model that overrides change, which MaxText allows with ``override_model_config`` only."""
    overridden = settings.overridden()
    described, _, _ = _described(settings, known.name, overridden)
    changed = {
        field: getattr(described, field)
        for field, key in _ROW_KEYS.items()
        if key in overridden and getattr(described, field) not in (None, getattr(known, field))
    }
    if changed and not settings.flag("override_model_config"):
        keys = ", ".join(_ROW_KEYS[field] for field in changed)
        raise ConfigError(
            f"{keys} contradicts model_name={known.name}",
            where=OVERRIDE,
            hint="MaxText wants override_model_config=true",
        )
    return changed


def _described(
    settings: Settings, name: str | None, taken: Settings
) -> tuple[Architecture, dict[str, str], tuple[str, ...]]:
    try:
        model = architecture_from_row(_row(taken, name))
    except InsufficientEvidenceError as error:
        return Architecture(name=name), {}, (f"the architecture is unknown: {error.message}",)
    except AsapError as error:
        raise ConfigError(error.message, where=settings.source("decoder_block")) from error
    unsaid = {field: None for field in ("kv_heads", "head_dim") if _ROW_KEYS[field] not in taken}
    model = model.model_copy(
        update={
            **unsaid,
            "name": name,
            "learned_positions": taken.positive("trainable_position_size") or 0,
            "moe_every": max(model.moe_every, taken.positive("interleave_moe_layer_step") or 1),
        }
    )
    keys = {field: key for field, key in _ROW_KEYS.items() if key in taken and getattr(model, field) is not None}
    return model, {f"model.{field}": taken.source(key) for field, key in keys.items()}, ()


def _row(settings: Settings, name: str | None) -> dict[str, Any]:
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
        "sliding_window": settings.positive("sliding_window_size"),
        "activation": str(settings.get("mlp_activations", "linear")),
        "decoder_block": settings.text("decoder_block"),
        "tied_embeddings": settings.flag("logits_via_embedding"),
    }
    if experts > 1:
        row["n_experts"] = experts
        row["top_k"] = settings.positive("num_experts_per_tok")
        row["moe_d_ff"] = _scaled(settings.positive("base_moe_mlp_dim"), scales["d_ff"])
        row["n_shared_experts"] = settings.whole("shared_experts") or 0
        row["first_dense_layers"] = settings.whole("first_num_dense_layers") or 0
    if settings.text("attention_type") == "mla":
        ranks = ("q_lora_rank", "kv_lora_rank", "qk_nope_head_dim", "qk_rope_head_dim", "v_head_dim")
        row |= {key: settings.positive(key) for key in ranks}
    return row


def _scales(settings: Settings) -> dict[str, int]:
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
