"""What a traced program does on each device, operation by operation, as read from the equations of its jaxpr."""

import math
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from asap.compiler.schedule.interconnect import Pairs
from asap.core.errors import InsufficientEvidenceError
from asap.plans.replica_groups import Groups, NamedMesh


@dataclass(frozen=True)
class Send:
    """A collective among devices, which are numbered by their place in the grid.

    Args:
        kind: as HLO calls it: ``all-gather``.
        operand_size: bytes that a device gives.
        size: bytes of the larger of operand and result.
        groups: the devices that take part together; none of a permute.
        pairs: sender and receiver of each message of a permute.
    """

    kind: str
    operand_size: int
    size: int
    groups: Groups = ()
    pairs: Pairs = ()

    @property
    def moves(self) -> bool:
        """Whether any device sends to another."""
        return any(len(group) > 1 for group in self.groups) or any(a != b for a, b in self.pairs)


@dataclass(frozen=True)
class Operation:
    """A fused computation, a collective, a loop, or a barrier, which takes no time.

    Args:
        after: indices of the operations that have to end before.
        flops: of matmuls, by precision.
        size: bytes read and written, by memory space: 0 is HBM, 1 is VMEM.
        send: the collective.
        body: operations of one pass of the loop.
        times: its passes.
    """

    after: tuple[int, ...] = ()
    flops: Mapping[str, float] = field(default_factory=dict)
    size: Mapping[int, float] = field(default_factory=dict)
    send: Send | None = None
    body: "tuple[Operation, ...]" = ()
    times: int = 1


_HBM, _VMEM = 0, 1


@dataclass(eq=False)
class Buffer:
    """Memory of an array: bytes, the operation that writes it, and where it lies."""

    size: int
    writer: int | None
    in_hbm: bool
    is_read: bool = False


@dataclass(frozen=True)
class Value:
    """What a variable stands for.

    Args:
        buffer: where it lies; none if it is computed where it is used, as constants and indices are.
        after: the operation after which it is there.
        part: its bytes, if it is not all of the buffer.
        view: tells parts of a buffer apart.
    """

    buffer: Buffer | None = None
    after: int | None = None
    part: int | None = None
    view: int = 0

    @property
    def size(self) -> int:
        """Bytes that reading it reads."""
        return self.part if self.part is not None else self.buffer.size if self.buffer else 0

    def fuses_with(self, operation: int | None) -> bool:
        """Whether it is what an operation gives, so that more can be computed from it before it is written."""
        return self.buffer is not None and self.part is None and self.buffer.writer == self.after == operation


@dataclass
class Draft:
    """An operation to which more may be fused, if it ``computes``."""

    after: set[int] = field(default_factory=set)
    computes: bool = True
    flops: Counter[str] = field(default_factory=Counter)
    reads: dict[Buffer, int] = field(default_factory=dict)
    writes: dict[Buffer, int] = field(default_factory=dict)
    send: Send | None = None
    body: tuple[Operation, ...] = ()
    times: int = 1

    def read(self, value: Value, most: int | None = None) -> None:
        """Count a value that is read, once if it is read again."""
        if value.buffer is not None:
            size = value.size if most is None else min(value.size, most)
            self.reads[value.buffer] = max(self.reads.get(value.buffer, 0), size)
            value.buffer.is_read = True

    def finished(self) -> Operation:
        """The operation, once all that read its results are known."""
        size: Counter[int] = Counter()
        written = {buffer: count for buffer, count in self.writes.items() if buffer.is_read}
        for buffer, count in (*self.reads.items(), *written.items()):
            size[_HBM if buffer.in_hbm else _VMEM] += count
        return Operation(tuple(sorted(self.after)), self.flops, size, self.send, self.body, self.times)


_VIEWS = ("slice", "dynamic_slice", "split", "reshape", "squeeze", "expand_dims", "broadcast_in_dim")
_COLLECTIVES = {
    "all_gather": "all-gather", "psum": "all-reduce", "pmax": "all-reduce", "pmin": "all-reduce",
    "reduce_scatter": "reduce-scatter", "all_to_all": "all-to-all", "ppermute": "collective-permute",
}  # fmt: skip
_WITHOUT_SENDING = ("axis_index", "pvary", "pcast")
_PRECISIONS = {"int8": "int8", "uint8": "int8", "float8_e4m3fn": "fp8", "float8_e5m2": "fp8"}
"""Products of any other type run at the rate of bf16."""


def sent_by(equation: Any, grid: NamedMesh) -> list[Send]:
    """The collectives of an equation, one for each of its arrays.

    Args:
        equation: of a jaxpr.
        grid: names and lengths of its axes.

    Raises:
        InsufficientEvidenceError: it is a collective of another kind, or among parts of an axis.
    """
    name = equation.primitive.name
    kind = _COLLECTIVES.get(name)
    if kind is None and ("axis_name" not in equation.params or name in _WITHOUT_SENDING):
        return []
    if kind is None or equation.params.get("axis_index_groups"):
        raise InsufficientEvidenceError("a collective that is not read", where=name)
    named = equation.params.get("axis_name", equation.params.get("axes", ()))
    groups = grid.groups(*((named,) if isinstance(named, str) else named))
    pairs = tuple((group[a], group[b]) for group in groups for a, b in equation.params.get("perm", ()))
    found = []
    for operand, result in zip(equation.invars, equation.outvars, strict=True):
        size = max(bytes_of(operand), bytes_of(result))
        found.append(Send(kind, bytes_of(operand), size, () if kind == "collective-permute" else groups, pairs))
    return found


def product_flops(equation: Any) -> dict[str, float]:
    """FLOPs of a product by precision: two for each element of the result and of the contraction."""
    if equation.primitive.name != "dot_general":
        return {}
    (contracted, _), _ = equation.params["dimension_numbers"]
    left = equation.invars[0].aval
    flops = 2.0 * math.prod(equation.outvars[0].aval.shape) * math.prod(left.shape[axis] for axis in contracted)
    return {_PRECISIONS.get(str(left.dtype), "bf16"): flops}


def is_view(equation: Any) -> bool:
    """Whether results are parts of the operand, or all of it again. What gathers one slice gives a part."""
    if equation.primitive.name != "gather":
        return equation.primitive.name in _VIEWS
    numbers, indices = equation.params["dimension_numbers"], equation.invars[1].aval
    return math.prod(indices.shape) == len(numbers.start_index_map)


def written_in_place(equation: Any) -> int | None:
    """Index of the operand that is written into the first one; ``None`` of any other equation."""
    name = equation.primitive.name
    return 2 if name.startswith("scatter") else 1 if name == "dynamic_update_slice" else None


def bytes_of(variable: Any) -> int:
    """Bytes of a variable on one device."""
    return math.prod(variable.aval.shape) * variable.aval.dtype.itemsize
