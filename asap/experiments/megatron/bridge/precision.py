"""The precision that is laid over a recipe of Megatron-Bridge (``megatron/bridge/training/mixed_precision.py``)."""

from collections.abc import Mapping
from typing import Any

from asap.experiments.files.python_literals import UNKNOWN

_KEY, _PARAMETER = "mixed_precision", "precision_config"
_IN_FP32, _IN_BF16 = "grad_reduce_in_fp32", "grad_reduce_in_bf16"
_KINDS = frozenset(("bf16", "fp16", "fp8", "fp4"))


def precision_of(said: Mapping[str, Any]) -> dict[str, Any]:
    """Megatron-LM's arguments, by the name of a precision (``bf16_mixed``) or by its fields; none where nothing is
    said."""
    found = said.get(_KEY, said.get(_PARAMETER))
    if found is None:
        return {}
    if not isinstance(found, str | dict):
        return {"bf16": UNKNOWN}
    fields: dict[str, Any] = found if isinstance(found, dict) else {}
    if isinstance(found, dict) and not _KINDS & fields.keys():
        return _gradients(fields)
    words = found if isinstance(found, str) else " ".join(key for key in ("bf16", "fp16") if fields.get(key) is True)
    arguments: dict[str, Any] = {"bf16": "bf16" in words, "fp16": "bf16" not in words and "fp16" in words}
    if isinstance(found, str) and not any(arguments.values()):
        arguments = {"bf16": True if "fp8" in words or "fp4" in words else UNKNOWN}
    if fields.get("fp4") or "fp4" in words:
        arguments["fp4_format"] = "e2m1"
    elif fields.get("fp8") or "fp8" in words:
        arguments["fp8_format"] = "hybrid"
    if arguments.get("bf16") is True and fields.get(_IN_FP32) is not UNKNOWN:
        arguments[_IN_FP32 if fields.get(_IN_FP32, True) else _IN_BF16] = True
    return arguments


def _gradients(fields: Mapping[str, Any]) -> dict[str, Any]:
    """Of a precision that is changed and not said."""
    reduces = fields.get(_IN_FP32)
    return {_IN_FP32: reduces, _IN_BF16: not reduces} if isinstance(reduces, bool) else {}
