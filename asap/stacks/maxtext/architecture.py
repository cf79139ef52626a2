"""The decoder that MaxText's settings describe, or that it ships under a name."""

from collections.abc import Mapping
from typing import Any

from asap.core.errors import ConfigError
from asap.core.text import plain
from asap.models import find_architecture
from asap.models.parameters import linear_attention_parameters
from asap.stacks.reading import is_on
from asap.stacks.registry import spec
from asap.stacks.shapes import shapes_of
from asap.stacks.stack_settings import StackSettings

_TABLE = spec("maxtext")
OF_MODEL = "asap.of_model"
"""Among settings: keys that the file of the model sets, which MaxText changes with ``override_model_config`` only."""
OVERRIDE_MODEL = "override_model_config"
KEYS = {field: words[-1].keys[0] for field, words in _TABLE.model.shapes.items()}
KEYS |= dict.fromkeys(("parallel_block", "qk_norm"), "decoder_block")
"""Field of the model → the setting that says it."""
ACTIVATIONS = "mlp_activations"
_SAID = ("base_num_decoder_layers", "base_emb_dim", "base_mlp_dim", "base_num_query_heads", "global_parameter_scale")
_INSTRUCT = "-Instruct"


def model_name_of(value: object) -> str | None:
    """The model whose file is meant; ``None`` for ``default``. An instruct model has the shapes of its base."""
    name = str(value or "").replace(_INSTRUCT, "")
    return None if name in ("", "default", "None", "none") else name


def is_gated(settings: Mapping[str, object]) -> bool:
    """Whether the MLP has two products before its activation: as it is said, else as the model of that name has it."""
    if isinstance(said := settings.get(ACTIVATIONS), list | tuple):
        return len(said) != 1
    known = find_architecture(model_name_of(settings.get("model_name")) or "")
    return known is None or known.gated_mlp


def model_of(settings: StackSettings) -> tuple[dict[str, Any], tuple[str, ...]]:
    """Fields of the model, and notes.

    A ``model_name`` stands for a file that wins over the configuration. Where that file was found, it is part of the
    settings; else the model is the one that MaxText ships under this name.

    Raises:
        ConfigError: the settings make no model, name one that is not known, or contradict the one that they name.
    """
    name, shaped = model_name_of(settings.text("model_name")), any(key in settings for key in _SAID)
    known = find_architecture(name) if name and OF_MODEL not in settings else None
    predicted = {"mtp_layers": layers} if (layers := settings.whole("mtp_num_layers") or 0) > 0 else {}
    if known is None and name and OF_MODEL not in settings:
        hint = f"put its shapes into models/{plain(name, 60)}.yml beside the configuration"
        reason = f"the model {plain(name, 60)} is not known, and has no file"
        raise ConfigError(reason, where=settings.source("model_name"), hint=hint)
    fields = _described(settings, name)
    if known is None:
        shapes = f"{fields['layers']} layers of {fields['d_model']}"
        note = f"no model is named and no shape is said: MaxText takes its own {shapes}"
        return fields | predicted, () if name or shaped else (note,)
    said = {field: fields.get(field) for field, key in KEYS.items() if key in settings}
    changed = {field: value for field, value in said.items() if str(value) not in ("None", str(getattr(known, field)))}
    if changed and not is_on(settings, OVERRIDE_MODEL):
        keys = [KEYS[field] for field in changed]
        reason = f"{', '.join(keys)} contradicts model_name={known.name}"
        raise ConfigError(reason, where=settings.where(keys[0]), hint=f"MaxText wants {OVERRIDE_MODEL}=true")
    return known.model_dump(exclude_unset=True) | changed | predicted, ()


def _described(settings: StackSettings, name: str | None) -> dict[str, Any]:
    """Fields of the model of the settings, its shapes by their scale."""
    said = {key: value for key, value in _TABLE.add_defaults(settings).items() if str(value) not in ("0", "-1")}
    full = StackSettings(said, settings.where(), settings.places)
    block, known = full.text("decoder_block") or "", _TABLE.model.families
    if block not in known:
        raise full.wrong("decoder_block", f"one of {', '.join(known)}")
    fields, _ = shapes_of(_TABLE.model, full, block)
    fields |= {field: fields[field] * by for field, by in _scales(full).items() if field in fields}
    if block == "gemma2" and "layers" in fields:
        fields["layers"] *= 2  # a local and a global one
    if block == "gemma4" and "experts" in fields:
        fields["shared_experts"] = fields["d_ff"] // fields["expert_d_ff"]
    if block == "llama4" and "experts" in fields and fields["d_ff"] != fields["expert_d_ff"]:
        fields["moe_every"] = max(fields.get("moe_every", 1), 2)
    return fields | {"name": name, "attention_parameters": _mean_attention_parameters(full, block)}


_WIDER = ("d_ff", "expert_d_ff", "heads", "kv_heads")


def _scales(settings: StackSettings) -> dict[str, int]:
    """Factors of ``global_parameter_scale`` (``get_individual_scales`` in MaxText's configs/types.py)."""
    scale = settings.count("global_parameter_scale", 1) or 1
    power = scale.bit_length() - 1
    if 2**power != scale:
        raise settings.wrong("global_parameter_scale", "a power of two")
    base, rest = divmod(power, 3)
    width = 1 << (base + (rest > 0))
    return {"layers": 1 << base, "d_model": 1 << (base + (rest > 1)), **dict.fromkeys(_WIDER, width)}


_GLOBAL_EVERY = {"gemma4": 6, "qwen3_next": 4, "qwen3_5": 4}
_OF_ATTENTION = ("base_emb_dim", "base_num_query_heads", "base_num_kv_heads", "head_dim")
_LINEAR = ("gdn_num_key_heads", "gdn_key_head_dim", "gdn_num_value_heads", "gdn_value_head_dim", "gdn_conv_kernel_dim")


def _mean_attention_parameters(settings: StackSettings, block: str) -> int | None:
    """Parameters of attention in a layer, averaged over local and global ones; ``None`` where all are alike."""
    layers = settings.count("base_num_decoder_layers")
    if block not in _GLOBAL_EVERY or layers is None:
        return None
    width, heads, kv_heads, dim = (settings.count(key) or 0 for key in _OF_ATTENTION)
    if block == "gemma4":
        pairs = settings.count("global_num_kv_heads") or kv_heads
        shared = 1 if settings.flag("share_kv_projections") else 2
        full = width * (settings.count("global_head_dim") or dim) * (2 * heads + shared * pairs)
        local = width * dim * (2 * heads + 2 * kv_heads)
    else:
        local = linear_attention_parameters(width, *(settings.count(key) or 0 for key in _LINEAR))
        full = width * dim * (3 * heads + 2 * kv_heads)
    wide = layers // _GLOBAL_EVERY[block]
    return round((local * (layers - wide) + full * wide) / layers)
