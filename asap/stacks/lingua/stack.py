"""What of Lingua no table says: the width of its MLP (``lingua/transformer.py``)."""

from collections.abc import Mapping

_MULTIPLE, _WIDTH = 256, 512


def model_fields(settings: Mapping[str, object]) -> dict[str, object]:
    """Two thirds of four widths of the model, scaled, and up to a multiple."""
    multiple, scale = settings.get("model.multiple_of", _MULTIPLE), settings.get("model.ffn_dim_multiplier", 1.0)
    inner = int(int(2 * 4 * int(str(settings.get("model.dim", _WIDTH))) / 3) * float(str(scale)))
    return {"d_ff": -(-inner // int(str(multiple))) * int(str(multiple))}
