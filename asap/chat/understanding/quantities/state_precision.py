"""Precisions of what a device keeps from step to step: "bf16 moments", "weights in bf16"."""

import re

from asap.levers.state_precision import StateSetting
from asap.plans.remat import StatePrecision

_PRECISIONS: dict[str, StatePrecision] = {"bf16": "bf16", "bfloat16": "bf16", "fp32": "fp32", "float32": "fp32"}
_OPTIMIZER = r"(?:adamw?|optimi[sz]er)"
_KEPT: tuple[tuple[str, tuple[StateSetting, ...]], ...] = (
    (r"first moments?|mu", ("first_moment",)),
    (r"second moments?|nu", ("second_moment",)),
    (r"moments?|(?:optimi[sz]er|adam) states?|momentum", ("first_moment", "second_moment")),
    (r"(?:master )?(?:weights|params|parameters)", ("weight_precision",)),
)
_NARROW = r"(?P<narrow>int8|fp8|int4|fp4|(?:8|4|eight|four)-?bits?)"
_MOMENTS = r"(?:moments?|(?:optimi[sz]er(?:'s)?|adam\w*) (?:states?|moments?)|momentum)"
_NARROW_STATES = re.compile(
    rf"\b{_NARROW} (?:\w+ )??(?:{_MOMENTS}|adamw?|optimi[sz]ers?)\b"
    rf"|\b{_MOMENTS} (?:(?:are|is|were|in|to|as|at) )*{_NARROW.replace('narrow', 'after')}\b",
    re.I,
)


def narrow_states_in(text: str) -> tuple[str | None, str]:
    """A precision of the moments for which nothing is on record ("int8"), and the text without it."""
    if (found := _NARROW_STATES.search(text)) is None:
        return None, text
    name = (found["narrow"] or found["after"]).lower()
    return name, text[: found.start()] + " " * len(found[0]) + text[found.end() :]


def state_precision_in(text: str) -> tuple[dict[StateSetting, StatePrecision], str]:
    """The settings that a text names with a precision, and the text without them."""
    found: dict[StateSetting, StatePrecision] = {}
    precision = f"(?P<precision>{'|'.join(_PRECISIONS)})"
    for words, settings in _KEPT:
        kept = rf"(?:(?:adam|optimi[sz]er)(?:'s)? )?(?:{words})"
        either = rf"\b{precision} (?:\w+ )??{kept}\b", rf"\b{kept} (?:(?:are|is|were|in|to|as|at) )*{precision}\b"
        if "second_moment" in settings and "first_moment" in settings:
            either += rf"\b{precision} {_OPTIMIZER}\b", rf"\b{_OPTIMIZER} (?:in|to|at|as) {precision}\b"
        for pattern in either:
            if match := re.search(pattern, text, re.I):
                found |= dict.fromkeys(settings, _PRECISIONS[match["precision"].lower()])
                text = text[: match.start()] + " " * len(match[0]) + text[match.end() :]
    return found, text
