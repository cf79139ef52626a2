"""What of Levanter's models no table says: the width of GPT-2's MLP."""

from collections.abc import Mapping


def model_fields(settings: Mapping[str, object]) -> dict[str, object]:
    """A width that is a multiple of the model's."""
    scale, width = settings.get("model.mlp_scale"), settings.get("model.hidden_dim")
    scaled = settings.get("model.type") == "gpt2" and scale and width
    return {"d_ff": int(str(scale)) * int(str(width)) if scaled else None}
