"""What a matrix product in a vendor's library computes: XProf reports neither FLOPs nor bytes for such calls.

Targets: cuBLAS and cuBLASLt, and hipBLAS and hipBLASLt, which XLA calls by the same names.
"""

import math
import re
from dataclasses import dataclass

_TARGET = re.compile(r'custom_call_target="__cublas\$(?:gemm|lt\$matmul(?:\$f8)?)"')
_CALL = re.compile(r"\A[^=]* = (?P<results>.*?) custom-call\((?P<operands>.*?)\), custom_call_target", re.DOTALL)
_SHAPE = re.compile(r"\b([a-z]+)(\d+)\w*\[([\d,]*)\]")


@dataclass(frozen=True)
class LibraryProduct:
    """A product of matrices: FLOPs, and the bytes of its operands and its result, each moved once."""

    flops: float
    bytes: float


def library_product(expression: str) -> LibraryProduct | None:
    """The product that an instruction computes; ``None`` if it is another call, or its shapes do not say.

    The sizes of operands and result determine the length ``k`` that is summed over: ``mk * kn / mn = k²``, in each of
    the products that leading dimensions count.

    Args:
        expression: the instruction as HLO prints it.
    """
    call = _CALL.search(expression) if _TARGET.search(expression) else None
    if call is None:
        return None
    result, operands = _SHAPE.search(call["results"]), _SHAPE.findall(call["operands"])
    if result is None or len(operands) < 2:
        return None
    left, right, product = shapes = [_Shape.of(*parts) for parts in (*operands[:2], result.groups())]
    batches = {shape.dimensions[:-2] for shape in shapes}
    if len(batches) > 1 or not product.elements:
        return None
    squared = left.elements * right.elements / (product.elements * math.prod(batches.pop()))
    depth = math.isqrt(round(squared))
    if not depth or depth * depth != squared:
        return None
    return LibraryProduct(2.0 * product.elements * depth, sum(shape.bytes for shape in shapes))


@dataclass(frozen=True)
class _Shape:
    dimensions: tuple[int, ...]
    bits: int

    @classmethod
    def of(cls, _kind: str, bits: str, dimensions: str) -> "_Shape":
        return cls(tuple(int(size) for size in dimensions.split(",") if size), int(bits))

    @property
    def elements(self) -> int:
        return math.prod(self.dimensions)

    @property
    def bytes(self) -> float:
        return self.elements * self.bits / 8
