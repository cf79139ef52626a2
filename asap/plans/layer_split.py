"""How many layers each stage of a pipeline holds, where stages do not divide them."""

from dataclasses import dataclass, replace
from typing import Any


@dataclass(frozen=True)
class LayerSplit:
    """What a launcher allows.

    Args:
        uneven: whether the last stage may hold fewer layers than the others.
        virtual: whether the last virtual stage may, too.
        said: whether it does only where a setting says so.
        laid_out: stages, and virtual stages of each, that settings on record fill one by one.
    """

    uneven: bool = False
    virtual: bool = False
    said: bool = False
    laid_out: tuple[int, int] | None = None

    def on_record(self) -> "LayerSplit":
        """What the settings on record allow, without another that would say more."""
        return replace(self, uneven=self.uneven and not self.said)

    def holds(self, layers: Any, stages: Any, repeats: Any) -> Any:
        """Whether layers go into so many stages, each of so many virtual ones; numbers or arrays."""
        allowed = layers % (stages * repeats) == 0
        if self.uneven:
            split = (repeats == 1) | self.virtual
            allowed = allowed | (split & (layers_of_last(layers, stages * repeats) > 0))
        if self.laid_out is not None:
            allowed = allowed | ((stages == self.laid_out[0]) & (repeats == self.laid_out[1]))
        return allowed


EVEN = LayerSplit()
"""Stages divide the layers."""


def layers_of_last(layers: Any, stages: Any) -> Any:
    """Layers that are left for the last stage where the others are as full as the fullest."""
    fullest = -(-layers // stages)
    return layers - fullest * (stages - 1)
