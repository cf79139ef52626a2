"""What a device keeps of each parameter between two steps: exact, from shapes, shardings, types and memory kinds."""

from collections import defaultdict
from collections.abc import Callable, Mapping
from math import prod
from typing import NamedTuple

from asap.mapping.coverage import Coverage, Place, Target, layers_of, value_of
from asap.mapping.language.program import Program
from asap.mapping.sharding import shardings

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
