"""One call of an operator as a profiler records it: name, shapes and types of its inputs, concrete values."""

import math
from typing import NamedTuple

ELEMENT_BYTES = {
    **dict.fromkeys(("unsigned char", "signed char", "bool"), 1),
    **dict.fromkeys(("c10::BFloat16", "c10::Half", "short int", "short"), 2),
    **dict.fromkeys(("float", "int"), 4),
    **dict.fromkeys(("double", "long int", "long", "c10::complex<float>"), 8),
}
"""Bytes of an element, by the names of C++ types that PyTorch records (c10/core/ScalarType.h)."""

_PRECISIONS = {"c10::BFloat16": "bf16", "c10::Half": "fp16", "float": "fp32", "double": "fp64"}
_FLOAT8 = "c10::Float8"

Shape = tuple[int, ...]


class OperatorCall(NamedTuple):
    """An operator, the shape of each input (empty for a scalar), its type, and what was given beside tensors."""

    name: str
    shapes: tuple[Shape, ...] = ()
    types: tuple[str, ...] = ()
    concrete: tuple[str, ...] = ()

    @property
    def base_name(self) -> str:
        """Without the namespace, and without what says that it works in place: ``aten::add_`` → ``add``."""
        return self.name.partition("::")[2].removesuffix("_")

    @property
    def precision(self) -> str | None:
        """Of the first input that is a number of known width: ``bf16``, ``fp16``, ``fp8``, ``fp32``, ``fp64``."""
        for kind in self.types:
            if kind.startswith(_FLOAT8):
                return "fp8"
            if kind in _PRECISIONS:
                return _PRECISIONS[kind]
        return None

    @property
    def is_casting(self) -> bool:
        """Whether it copies from one type to another."""
        return self.base_name == "copy" and len(self.types) > 1 and self.types[0] != self.types[1] != ""

    @property
    def largest(self) -> int:
        """Bytes of the largest input."""
        return max(map(self.bytes_of, range(len(self.shapes))), default=0)

    @property
    def total(self) -> int:
        """Bytes of all inputs."""
        return sum(map(self.bytes_of, range(len(self.shapes))))

    def bytes_of(self, place: int) -> int:
        """Bytes of an input; a scalar, a list and an unknown type count nothing."""
        shape = self.shapes[place]
        kind = self.types[place] if place < len(self.types) else ""
        width = 1 if kind.startswith(_FLOAT8) else ELEMENT_BYTES.get(kind, 0)
        return math.prod(shape) * width if shape else 0

    def numbers(self, place: int) -> Shape:
        """A list that was given: ``[1, 1]`` → ``(1, 1)``; empty where it is not recorded."""
        text = self.concrete[place].strip("[] ") if place < len(self.concrete) else ""
        parts = text.split(",") if text else []
        return tuple(int(part) for part in parts if part.strip().lstrip("-").isdigit())

    def is_true(self, place: int) -> bool:
        """Whether a flag was given and is set."""
        return place < len(self.concrete) and self.concrete[place] == "True"
