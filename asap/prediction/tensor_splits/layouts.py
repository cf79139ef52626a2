"""How each tensor lies under a program, beside how it lies under the plan of the program."""

from collections.abc import Iterator
from dataclasses import dataclass
from math import prod

from asap.mapping.coverage import Place, layers_of
from asap.mapping.language.program import Mesh, Program
from asap.mapping.sharding import default_axes, shardings
from asap.mapping.target import Target
from asap.prediction.tensor_splits.storage import Axes

WIDTH, HIDDEN, EXPERTS = "embed", "hidden", "experts"
"""Dimensions by the names that programs have for them."""

Mlp = tuple[tuple[int, int] | None, bool]
"""Layers, and whether of their experts."""


@dataclass(frozen=True)
class TensorLayout:
    """A tensor in some layers: the axes of each dimension under the plan, and under the program."""

    place: Place
    usual: Axes
    stored: Axes

    @property
    def dimensions(self) -> tuple[str, ...]:
        """Names of its dimensions."""
        return tuple(dimension.name for dimension in self.place.tensor.dimensions)

    @property
    def mlp(self) -> Mlp | None:
        """The MLP that it is a weight of."""
        return (self.place.layers, EXPERTS in self.dimensions) if HIDDEN in self.dimensions else None

    def elements(self, stages: float) -> float:
        """Of all layers of one pipeline stage, before any split."""
        layers = len(layers_of(self.place)) / (stages if self.place.layers else 1.0)
        return layers * prod(dimension.length or 1 for dimension in self.place.tensor.dimensions)


def tensor_layouts(program: Program, mesh: Mesh, target: Target) -> Iterator[TensorLayout]:
    """Every parameter of a model under a checked program."""
    for found in shardings(target, program, "shard"):
        stored = tuple(tuple(axis for axis in split.axes if mesh.total(axis) > 1) for split in found.splits)
        usual = tuple(default_axes(dimension, mesh, set()) for dimension in found.place.tensor.dimensions)
        yield TensorLayout(found.place, usual, stored)


def residual_axes(target: Target, mesh: Mesh) -> tuple[str, ...]:
    """The axes that split the width of the residual stream."""
    found = next(tensor for tensor in target.activations if tensor.name == "residual")
    width = next(dimension for dimension in found.dimensions if dimension.name == WIDTH)
    return default_axes(width, mesh, set())
