"""Modules of a layer that are to be recomputed alone: "selective recompute of layernorm + moe_act"."""

import re

from asap.plans.partial_remat import RecomputedModules

_NAMES: tuple[tuple[str, str], ...] = (
    (r"core[_ -]?att\w*|attention core", "core_attn"),
    (r"(?:layer[_ -]?|rms[_ -]?)?norms?", "layernorm"),
    (r"mla[_ ]up[_ ]proj\w*", "mla_up_proj"),
    (r"moe[_ -]act\w*|expert activations?", "moe_act"),
    (r"shared[_ -]experts?", "shared_experts"),
    (r"mlps?", "mlp"),
    (r"moe(?![_ -]act)(?: layers?)?", "moe"),
)
_MODULE = "|".join(f"(?:{words})" for words, _ in _NAMES)
_LIST = rf"(?:the\s+)?((?:{_MODULE})\b(?:\s*(?:,|\+|&|\band\b)\s*(?:the\s+)?(?:{_MODULE})\b)*)"
_RECOMPUTED = re.compile(
    r"\b(?:recomput\w*|rematerialis\w*|selective(?:ly)?)\b"
    rf"(?:\s+(?:only|just|recomput\w*|of|for|with|modules?))*\s*[:=]?\s*{_LIST}"
    rf"|\b(?:only|just)\s+{_LIST}\s+(?:is |are )?recomputed\b",
    re.I,
)


def recomputed_modules_in(text: str) -> RecomputedModules | None:
    """The policy that recomputes the modules that are named, and keeps all else; ``None`` without any."""
    found = _RECOMPUTED.search(text)
    if found is None:
        return None
    words = next(filter(None, found.groups()))
    return RecomputedModules.of([name for names, name in _NAMES if re.search(rf"\b(?:{names})\b", words, re.I)])
