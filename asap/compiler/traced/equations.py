"""Single equations of a jaxpr: what they send, the FLOPs of products, and results that are parts of an operand."""

import math
from typing import Any

from asap.compiler.schedule.replica_groups import NamedMesh
from asap.compiler.traced.operations import Send
from asap.core.errors import InsufficientEvidenceError

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
