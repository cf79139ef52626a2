"""What a program is written for: tensors, their dimensions, and how they lie where no line says otherwise."""

from dataclasses import dataclass

from asap.mapping.language.grammar import STATES

LAYER = "layer"
"""What lines on rematerialisation speak of: not a tensor, but the layer itself."""


@dataclass(frozen=True)
class Dimension:
    """One dimension of a tensor.

    Args:
        name: as lines call it; empty for one that is never split.
        length: elements; ``None`` is unknown.
        axes: mesh axes that split it unless a line says otherwise, as far as they divide it.
    """

    name: str = ""
    length: int | None = None
    axes: tuple[str, ...] = ()


@dataclass(frozen=True)
class Tensor:
    """A parameter or an activation; ``layers`` are those that have it with this shape, none for one outside."""

    name: str
    dimensions: tuple[Dimension, ...] = ()
    layers: tuple[int, ...] = ()


@dataclass(frozen=True)
class Target:
    """A model whose training step is mapped.

    Args:
        name: of the model.
        axes: every axis that the mesh may have.
        parameters: its weights.
        activations: points where an activation may be constrained.
        layers: of the decoder.
        weight_precision: type of parameters of which no line says another.
    """

    name: str
    axes: tuple[str, ...]
    parameters: tuple[Tensor, ...]
    activations: tuple[Tensor, ...]
    layers: int
    weight_precision: str = "fp32"

    def tensors(self, keyword: str) -> tuple[Tensor, ...]:
        """What lines with a keyword may name; for ``remat`` the layers themselves."""
        if keyword == "constrain":
            return self.activations
        if keyword == "remat":
            return (Tensor(LAYER, (), tuple(range(self.layers))),)
        return self.parameters + (tuple(Tensor(state) for state in STATES) if keyword == "place" else ())
