"""What of OLMo no table says: the width of its MLP (``olmo/config.py``)."""

from collections.abc import Mapping

Settings = Mapping[str, object]


def model_fields(settings: Settings) -> dict[str, object]:
    """The width of the MLP, which counts both of its inner matrices where it is gated."""
    ratio, width = settings.get("model.mlp_ratio", 4), settings.get("model.d_model", 0)
    whole = int(str(settings.get("model.mlp_hidden_size", int(str(ratio)) * int(str(width)))))
    return {"d_ff": whole // 2 if settings.get("model.activation_type", "swiglu") == "swiglu" else whole}
