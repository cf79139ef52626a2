"""The sharding of every tensor under a program: what its lines say, and the target's rules for the rest."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from asap.mapping.coverage import Coverage, Dimension, Line, Place, Target
from asap.mapping.language.program import Mesh, Program, Sharding


@dataclass(frozen=True)
class Split:
    """Mesh axes over one dimension, and the line that says so; ``None`` where the target's rule does."""

    dimension: Dimension
    axes: tuple[str, ...]
    line: Sharding | None


@dataclass(frozen=True)
class TensorSharding:
    """How a tensor lies in some layers."""

    place: Place
    splits: tuple[Split, ...]


def shardings(target: Target, program: Program, keyword: Literal["shard", "constrain"]) -> Iterator[TensorSharding]:
    """How every parameter (``shard``) or activation (``constrain``) lies.

    A line decides for its dimension. Where none speaks, the rule of the target does, without the axes that lines
    have taken for other dimensions of the same tensor.
    """
    coverage = Coverage(target, keyword, program)
    names = {dimension.name for place in coverage.places for dimension in place.tensor.dimensions if dimension.name}
    holding = {name: coverage.holding(name) for name in names}
    for bit, place in enumerate(coverage.places):
        lines = [holding.get(dimension.name, {}).get(bit) for dimension in place.tensor.dimensions]
        yield TensorSharding(place, tuple(_splits(place, lines, program.mesh)))


def _splits(place: Place, lines: Sequence[Line | None], mesh: Mesh | None) -> Iterator[Split]:
    taken = {axis.text for line in lines if isinstance(line, Sharding) for axis in line.axes}
    for dimension, line in zip(place.tensor.dimensions, lines, strict=True):
        if isinstance(line, Sharding):
            yield Split(dimension, tuple(axis.text for axis in line.axes), line)
        else:
            yield Split(dimension, default_axes(dimension, mesh, taken), None)


def default_axes(dimension: Dimension, mesh: Mesh | None, taken: set[str]) -> tuple[str, ...]:
    """The axes of the target's rule that are in the mesh, free, and divide the dimension."""
    chosen: tuple[str, ...] = ()
    if mesh is None:
        return chosen
    for axis in dimension.axes:
        more = (*chosen, axis)
        if mesh.total(axis) == 1 or axis in taken:
            continue
        if dimension.length is None or dimension.length % math.prod(mesh.total(each) for each in more) == 0:
            chosen = more
    return chosen
