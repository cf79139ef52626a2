"""What of Levanter's models no table says: windows, and sizes that follow from others."""

from collections.abc import Mapping

_WINDOWED = ("mistral", "mixtral")
"""Kinds of model whose ``sliding_window`` counts without ``use_sliding_window``."""


def model_fields(settings: Mapping[str, object]) -> dict[str, object]:
    """A window of all layers, and GPT-2's positions and width."""
    kind, window = settings.get("model.type"), settings.get("model.sliding_window")
    windowed = kind in _WINDOWED or str(settings.get("model.use_sliding_window")).casefold() == "true"
    fields: dict[str, object] = {"sliding_window": window if windowed else None}
    scale, width = settings.get("model.mlp_scale"), settings.get("model.hidden_dim")
    if kind == "gpt2":
        fields["learned_positions"] = settings.get("model.seq_len")
        fields["d_ff"] = int(str(scale)) * int(str(width)) if scale and width else None
    return fields
