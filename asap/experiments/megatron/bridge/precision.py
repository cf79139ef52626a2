"""The precision that a Python program of Megatron-Bridge says (``megatron/bridge/training/mixed_precision.py``)."""

from collections.abc import Mapping
from typing import Any

from asap.experiments.launch.python.objects import ARGUMENTS, CLASS, UNKNOWN

_KEY, _PARAMETER = "mixed_precision", "precision_config"
_CLASS_OF_ALL = "MixedPrecisionConfig"
_IN_FP32, _IN_BF16 = "grad_reduce_in_fp32", "grad_reduce_in_bf16"
_KINDS = frozenset(("bf16", "fp16", "fp8", "fp4"))


def precision_of(said: Mapping[str, Any]) -> dict[str, Any]:
    """Megatron-LM's arguments; none where nothing is said."""
    found = said.get(_KEY, said.get(_PARAMETER))
    if found is UNKNOWN:
        return {"bf16": UNKNOWN}
    if found is None:
        return {}
    fields = found if isinstance(found, dict) else {}
    if CLASS not in fields and isinstance(found, dict) and not _KINDS & fields.keys():
        return _gradients(fields)
    named = _name(found)
    if named is UNKNOWN:
        return {"bf16": UNKNOWN}
    words = f"{named} {' '.join(key for key in ('bf16', 'fp16') if fields.get(key) is True)}"
    arguments: dict[str, Any] = {"bf16": "bf16" in words, "fp16": "bf16" not in words and "fp16" in words}
    if not (arguments["bf16"] or arguments["fp16"]) and named:
        arguments = {"bf16": True if "fp8" in words or "fp4" in words else UNKNOWN}
    if fields.get("fp4") or "fp4" in words:
        arguments["fp4_format"] = "e2m1"
    elif fields.get("fp8") or "fp8" in words:
        arguments["fp8_format"] = "hybrid"
    if arguments.get("bf16") is True and fields.get(_IN_FP32) is not UNKNOWN:
        reduces = fields.get(_IN_FP32, True)
        arguments[_IN_FP32 if reduces else _IN_BF16] = True
    return arguments


def _gradients(fields: Mapping[str, Any]) -> dict[str, Any]:
    """Of a precision that is changed and not said."""
    reduces = fields.get(_IN_FP32)
    return {_IN_FP32: reduces, _IN_BF16: not reduces} if isinstance(reduces, bool) else {}


def _name(found: Any) -> Any:
    """What a precision is called: ``bf16_mixed``; ``""`` where its fields say all, ``UNKNOWN`` where only a run can
    tell."""
    if isinstance(found, str):
        return found
    if not isinstance(found, dict):
        return UNKNOWN
    called = str(found.get(CLASS, "")).rpartition(".")[2]
    if called in ("", _CLASS_OF_ALL):
        return ""
    first = next(iter(found.get(ARGUMENTS, ())), None)
    return called if first is None else f"{first}" if isinstance(first, str) else UNKNOWN
