"""The pattern in which layers of a decoder repeat."""

import math

from asap.models.architecture import Architecture


def pattern_length(model: Architecture) -> int:
    """Layers until it repeats, where dense and MoE layers, or local and global attention, alternate; else 1."""
    windows = (model.global_layer_every or 1) if model.sliding_window is not None else 1
    return math.lcm(model.moe_every if model.is_moe else 1, windows)
