"""Layers of Megatron-LM whose attention is not that of the others (``--experimental-attention-variant``)."""

from asap.core.text import plain
from asap.experiments.settings.stack_settings import StackSettings
from asap.models.parameters import linear_attention_parameters

VARIANT, FREQUENCY = "experimental_attention_variant", "linear_attention_freq"
_LINEAR = {
    "linear_num_key_heads": 16, "linear_key_head_dim": 128, "linear_num_value_heads": 32, "linear_value_head_dim": 128,
    "linear_conv_kernel_dim": 4,
}  # fmt: skip
"""Arguments of the gated delta net with their defaults (``transformer_config.py``)."""
_GATED_DELTA_NET = ("gdn", "gdn2", "gated_delta_net")


def mean_attention_parameters(settings: StackSettings, notes: list[str]) -> int | None:
    """Parameters of attention in a layer, on average over linear and full ones; ``None`` where all are alike.

    Raises:
        ConfigError: a variant that is not read, or layers that are no period.
    """
    variant = settings.text(VARIANT)
    if variant is None:
        return None
    if variant == "dsa":
        notes.append(f"{VARIANT} dsa: the indexer of sparse attention is not counted, and attention is taken as full")
        return None
    if variant not in _GATED_DELTA_NET:
        raise settings.wrong(VARIANT, f"one of {', '.join((*_GATED_DELTA_NET, 'dsa'))}")
    every = settings.count(FREQUENCY)
    width, heads = settings.count("hidden_size"), settings.count("num_attention_heads")
    layers = settings.count("num_layers")
    if every is None or not (width and heads and layers):
        raise settings.wrong(VARIANT, f"beside a number as {FREQUENCY}, num_layers, hidden_size and attention heads")
    key_heads, key_dim, value_heads, value_dim, kernel = (
        settings.count(key, value) or 0 for key, value in _LINEAR.items()
    )
    linear = linear_attention_parameters(width, key_heads, key_dim, value_heads, value_dim, kernel)
    groups = settings.count("num_query_groups", 1) or 1 if settings.flag("group_query_attention") else heads
    dim = settings.count("kv_channels", width // heads) or 0
    outputs = 3 if settings.flag("attention_output_gate") else 2
    full = width * dim * (outputs * heads + 2 * groups)
    known = plain(variant, 40)
    notes.append(
        f"{known} in {layers - layers // every} of {layers} layers: its scores are taken as those of attention"
    )
    return round((linear * (layers - layers // every) + full * (layers // every)) / layers)
