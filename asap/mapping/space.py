"""The decisions that a program can make, and how many ways there are to make each."""

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

from asap.hardware import Slice
from asap.mapping.algorithm import ALGORITHMS, grids
from asap.mapping.coverage import Target, Tensor, matches
from asap.mapping.language.format import format_decision
from asap.mapping.language.grammar import MEMORIES, STATES
from asap.mapping.language.program import Decision, Mesh, Program, Sharding, TensorSetting
from asap.plans import Remat
from asap.plans.enumeration import factorisations, valid
from asap.plans.plan import Plan
from asap.plans.validity import Constraints

_FROZEN = ConfigDict(frozen=True, populate_by_name=True)


class Choice(BaseModel):
    """One decision. ``options`` is what the grammar allows, ``valid`` what of it passes the checks."""

    model_config = _FROZEN

    decision: str
    times: int = Field(description="how often it is made: once, or for each layer")
    options: int
    valid: int
    chosen: tuple[str, ...] = Field(description="the program's lines on it; empty: the usual rule")


class Space(BaseModel):
    """All decisions of a program's target under the program's mesh."""

    model_config = _FROZEN

    schema_: Literal["asap.mapping/1"] = Field(default="asap.mapping/1", alias="schema")
    choices: tuple[Choice, ...]
    options_log10: float = Field(description="decimal logarithm of the number of programs that the grammar allows")
    valid_log10: float = Field(description="the same of those that pass the checks")
    not_counted: tuple[str, ...] = Field(description="decisions without a bound on their number, or without facts")


def space(program: Program, target: Target, hardware: Slice, constraints: Constraints) -> Space:
    """The space around a checked program.

    Args:
        program: its mesh decides how tensors can be split.
        target: the model.
        hardware: the machine.
        constraints: what limits the mesh.
    """
    choices = tuple(_choices(program, target, hardware, constraints))
    return Space(
        choices=choices,
        options_log10=round(sum(choice.times * math.log10(choice.options) for choice in choices), 1),
        valid_log10=round(sum(choice.times * math.log10(choice.valid) for choice in choices), 1),
        not_counted=("index maps of the order of devices", "constrain", "layout", "dtype", "microbatches"),
    )


def _choices(program: Program, target: Target, hardware: Slice, constraints: Constraints) -> Iterator[Choice]:
    meshes = factorisations(hardware.devices_per_slice, target.axes)
    allowed = int(valid(meshes, constraints, Plan()).sum()) if hardware.slices == 1 else len(meshes)
    yield _choice(program, "mesh", 1, len(meshes), max(allowed, 1))
    if hardware.topology:
        blocks = math.prod(sum(length % side == 0 for side in range(1, length + 1)) for length in hardware.topology)
        yield _choice(program, "order", 1, 3 + math.prod(hardware.topology), 3 + blocks)
    axes = [
        axis for axis in (program.mesh.axes if program.mesh else ()) if program.mesh and program.mesh.total(axis) > 1
    ]
    for tensor in target.parameters:
        if split := [dimension for dimension in tensor.dimensions if dimension.name]:
            raw = 2 ** (len(axes) * len(split))
            yield _choice(
                program, f"shard {tensor.name}", max(len(tensor.layers), 1), raw, _ways(tensor, axes, program)
            )
    yield _choice(program, "remat", target.layers, len(Remat), len(Remat))
    yield _choice(program, "place", len(STATES), len(MEMORIES), len(MEMORIES))


def _ways(tensor: Tensor, axes: Sequence[str], program: Program) -> int:
    """Ways to give each axis to one dimension or to none, such that every dimension divides."""
    dimensions = [dimension for dimension in tensor.dimensions if dimension.name]
    mesh, found = program.mesh, 0
    for given in product(range(-1, len(dimensions)), repeat=len(axes)):
        shards = [1] * len(dimensions)
        for axis, place in zip(axes, given, strict=True):
            if place >= 0 and mesh is not None:
                shards[place] *= mesh.total(axis)
        found += all((d.length or 0) % over == 0 for d, over in zip(dimensions, shards, strict=True))
    return found


def _choice(program: Program, decision: str, times: int, options: int, valid: int) -> Choice:
    keyword, _, tensor = decision.partition(" ")
    chosen = tuple(format_decision(d) for d in program.decisions if _is_about(d, keyword, tensor))
    return Choice(decision=decision, times=times, options=options, valid=valid, chosen=chosen)


def _is_about(decision: Decision, keyword: str, tensor: str) -> bool:
    if isinstance(decision, Sharding):
        return decision.keyword == keyword and any(matches(name.text, tensor) for name in decision.names)
    if isinstance(decision, TensorSetting):
        return decision.keyword == keyword
    return keyword == ("mesh" if isinstance(decision, Mesh) else "order") and not hasattr(decision, "keyword")


_WALKS = ("row", "col", "fold")
_BLOCKS = ("block(2, 2)", "block(2, 1)", "block(4, 2)")


def orders(topology: tuple[int, ...]) -> tuple[str, ...]:
    """Orders of a torus that differ: walks and, on a flat one, blocks, a snake and a skew."""
    if len(topology) != 2:
        return _WALKS
    rows, columns = topology
    blocks = tuple(block for block in _BLOCKS if rows % int(block[6]) == 0 and columns % int(block[9]) == 0)
    snake = f"f(i, j) = i * {columns} + (i % 2 ? {columns - 1} - j : j)"
    return (*_WALKS, *blocks, snake, f"f(i, j) = i * {columns} + (i + j) % {columns}")


_OPTIONS: Mapping[str, tuple[str, ...]] = {
    "stationary": ("A", "B", "C"),
    "panels": ("1", "4"),
    "halo": ("1", "2", "4"),
    "replication": (),
}


@dataclass(frozen=True)
class AlgorithmSpace:
    """The decisions about an algorithm: keyword → its options. A configuration chooses one of each.

    Args:
        algorithm: its name.
        options: of each keyword, as the line says them.
    """

    algorithm: str
    options: Mapping[str, tuple[str, ...]]

    def text(self, chosen: Mapping[str, str]) -> str:
        """The program that makes these choices."""
        return f"algorithm {self.algorithm}\n" + "".join(f"{key} {chosen[key]}\n" for key in self.options)

    def choices(self) -> Iterator[dict[str, str]]:
        """Every way to choose."""
        for values in product(*self.options.values()):
            yield dict(zip(self.options, values, strict=True))


def machine_space(algorithm: str, hardware: Slice) -> AlgorithmSpace:
    """Every decision with the options that a machine has; not all of them go together."""
    every = grids(len(ALGORITHMS[algorithm].grid), hardware.devices_per_slice)
    return algorithm_space(algorithm, every, orders(hardware.topology or ()))


def algorithm_space(
    algorithm: str, sides: Iterable[tuple[int, ...]], orders: tuple[str, ...], overlaps: bool = True
) -> AlgorithmSpace:
    """Every decision, with these grids and orders."""
    known = ALGORITHMS[algorithm]
    options = {"grid": tuple(f"({', '.join(map(str, grid))})" for grid in sides), "order": orders}
    options |= {key: _OPTIONS[key] for key in known.settings if _OPTIONS[key]}
    if known.exchanges:
        options["exchange"] = known.exchanges
    options |= {f"layout {array}": ("row", "col") for array in known.arrays}
    return AlgorithmSpace(algorithm, options | ({"overlap": ("on", "off")} if overlaps else {}))
