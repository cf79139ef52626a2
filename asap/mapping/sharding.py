"""How each tensor of a program lies, and what a device keeps of each parameter between two steps."""

import math
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import prod
from typing import Literal, NamedTuple

from asap.mapping.coverage import Coverage, Dimension, Line, Place, Target, layers_of, value_of
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


_BYTES = {"fp32": 4, "bf16": 2, "fp16": 2, "fp8": 1, "int8": 1}
_MOMENTS = 2
"""Of Adam; they have the type of their parameter, and lie as it does."""

_HOST = "pinned_host"


class Kept(NamedTuple):
    """Bytes of a parameter and its moments on one device, and in the memory of its host."""

    hbm: float
    host: float


def kept_state(program: Program, target: Target) -> Mapping[str, Kept]:
    """For each parameter, over all its layers, what one device keeps under a checked program with a mesh."""
    dtype, memory = (_value_by_layer(program, target, keyword) for keyword in ("dtype", "place"))
    weights = program.setting("weight_precision")
    usual = weights.word if weights else target.weight_precision
    kept: dict[str, list[float]] = defaultdict(lambda: [0.0, 0.0])
    for found in shardings(target, program, "shard"):
        name = found.place.tensor.name
        elements = _elements(program, found.place, [split.axes for split in found.splits])
        for layer in layers_of(found.place):
            size = elements * _BYTES[dtype(name, layer) or usual]
            on_host = (memory(name, layer) or memory("parameters", None)) == _HOST
            kept[name][on_host] += size
            kept[name][memory("optimizer", None) == _HOST] += _MOMENTS * size
    return {name: Kept(*sizes) for name, sizes in kept.items()}


def kept_in_all(program: Program, target: Target) -> Kept:
    """What one device keeps of all parameters."""
    return Kept(*(sum(sizes) for sizes in zip(*kept_state(program, target).values(), strict=True)))


def _elements(program: Program, place: Place, axes: list[tuple[str, ...]]) -> float:
    """Of one layer on one device; a stage keeps its own layers only."""
    mesh = program.mesh
    split = [*(axis for each in axes for axis in each), *(("stage",) if place.layers else ())]
    shards = prod(mesh.total(axis) for axis in split) if mesh else 1
    return prod(dimension.length or 1 for dimension in place.tensor.dimensions) / shards


def _value_by_layer(program: Program, target: Target, keyword: str) -> Callable[[str, int | None], str]:
    """What lines say of a tensor in a layer; empty where none does."""
    coverage = Coverage(target, keyword, program)
    said = {
        (coverage.places[bit].tensor.name, layer): value_of(line)[0]
        for bit, line in coverage.holding().items()
        for layer in layers_of(coverage.places[bit])
    }
    return lambda name, layer: said.get((name, layer), "")
