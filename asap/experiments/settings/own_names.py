"""What a setting that only a fork of a stack has decides, as far as its name tells."""

import re

_SHAPES = re.compile(
    r"(?:^|_)(?:experts?|heads?|hidden|ffn|intermediate|latent|lora|dense|window|depth|width|layers?|freeze|frozen|only)(?:_|$)"
)
_RECOMPUTES = re.compile(r"recompute|(?:^|_)(?:swap|offload)_(?:attention|modules?|activations?)(?:_|$)")


def decides(key: str) -> bool:
    """Whether a setting by its name decides the model, or what is recomputed."""
    return _SHAPES.search(key) is not None or recomputes(key)


def recomputes(key: str) -> bool:
    """Whether a setting by its name says what is recomputed, or kept in host memory."""
    return _RECOMPUTES.search(key) is not None
