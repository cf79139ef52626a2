"""FLOPs of matrix products, which the compiler writes as convolutions."""

import math
import re
from collections import Counter

from asap.compiler.hlo import Computation, Instruction, Module

_LABELS = re.compile(r"dim_labels=\w+?_(\w+)->")
_SIZES = re.compile(r"window=\{size=([\dx]+)")
_PADS = re.compile(r"pad=([-\d_x]+)")

_PRECISIONS = {"s8": "int8", "u8": "int8", "f8e4m3fn": "fp8", "f8e5m2": "fp8"}
"""Products of anything else run at the rate of bf16."""


def product_flops(module: Module, instruction: Instruction, computation: Computation) -> Counter[str]:
    """FLOPs of a product, or of all in a fusion, by precision: two for each element of a result and of what it sums."""
    if instruction.opcode == "convolution":
        return _flops(instruction, computation)
    called = module.callee(instruction)
    found: Counter[str] = Counter()
    for inner in called.instructions if called else ():
        found += product_flops(module, inner, called or computation)
    return found


def _flops(convolution: Instruction, computation: Computation) -> Counter[str]:
    """A padded dimension of the window lays out what the kernel has; any other is summed over, as its features are."""
    kernel = computation.by_name[convolution.operands[1]].shapes[0]
    labels = _LABELS.search(convolution.attributes)
    sizes, pads = _SIZES.search(convolution.attributes), _PADS.search(convolution.attributes)
    lengths = [int(length) for length in sizes.group(1).split("x")] if sizes else []
    padded = [pad != "0_0" for pad in pads.group(1).split("x")] if pads else [False] * len(lengths)
    summed = [length for length, pad in zip(lengths, padded, strict=True) if not pad]
    features = kernel.dims[labels.group(1).index("i")] if labels else 1
    flops = 2 * math.prod(convolution.shapes[0].dims) * features * math.prod(summed)
    return Counter({_PRECISIONS.get(kernel.dtype, "bf16"): flops})
