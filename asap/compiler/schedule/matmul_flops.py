"""FLOPs of matmuls, which the compiler writes as convolutions."""

import math
import re
from collections import Counter

from asap.compiler.schedule.hlo import Computation, Instruction, Module

_LABELS = re.compile(r"dim_labels=\w+?_(\w+)->")
_SIZES = re.compile(r"window=\{size=([\dx]+)")
_PADS = re.compile(r"pad=([-\d_x]+)")
_DILATIONS = re.compile(r"lhs_dilate=([\dx]+)")

_PRECISIONS = {"s8": "int8", "u8": "int8", "f8e4m3fn": "fp8", "f8e5m2": "fp8"}
"""Matmuls of any other type run at the rate of bf16."""


def matmul_flops(module: Module, instruction: Instruction, computation: Computation) -> Counter[str]:
    """FLOPs of a matmul, or of all in a fusion, by precision: two per element of the result and of the contraction."""
    if instruction.opcode == "convolution":
        return _flops(instruction, computation)
    called = module.callee(instruction)
    found: Counter[str] = Counter()
    for inner in called.instructions if called else ():
        found += matmul_flops(module, inner, called or computation)
    return found


def _flops(convolution: Instruction, computation: Computation) -> Counter[str]:
    """The contraction runs over the input features and over what of the window meets data.

    A dimension of the window that is padded is batch. Of one whose input is dilated only one place in so many holds
    data: so the products of several experts are written, each of which meets its own weights alone.
    """
    kernel = computation.by_name[convolution.operands[1]].shapes[0]
    labels = _LABELS.search(convolution.attributes)
    sizes, pads = _SIZES.search(convolution.attributes), _PADS.search(convolution.attributes)
    lengths = [int(length) for length in sizes.group(1).split("x")] if sizes else []
    padded = [pad != "0_0" for pad in pads.group(1).split("x")] if pads else [False] * len(lengths)
    dilations = _DILATIONS.search(convolution.attributes)
    apart = [int(places) for places in dilations.group(1).split("x")] if dilations else [1] * len(lengths)
    contracted = [
        math.ceil(length / places) for length, pad, places in zip(lengths, padded, apart, strict=True) if not pad
    ]
    features = kernel.dims[labels.group(1).index("i")] if labels else 1
    flops = 2 * math.prod(convolution.shapes[0].dims) * features * math.prod(contracted)
    return Counter({_PRECISIONS.get(kernel.dtype, "bf16"): flops})
