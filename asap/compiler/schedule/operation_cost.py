"""Time and category of one instruction that is not a collective: matmuls, attention kernels, traffic of memory."""

import math
import re
from collections import Counter

from asap.compiler.schedule.collectives import KINDS
from asap.compiler.schedule.hlo import Computation, Instruction, Module, Shape, shapes
from asap.compiler.schedule.interconnect import DeviceRates

_SIZE_PRESERVING = ("bitcast", "reshape", "transpose", "pad", "convert", "copy")
"""Inside a fusion, as much of their operand is read as of their result."""

_SLICES = ("dynamic-slice", "slice", "gather")
_UPDATE_OPERAND = {"dynamic-update-slice": 1, "scatter": 2}
"""Index of the operand that is written into the first one."""

Bytes = Counter[int]
"""By memory space: 0 is HBM, 1 is VMEM."""


def bytes_accessed(module: Module, instruction: Instruction, computation: Computation) -> Bytes:
    """Bytes read and written by one run of an instruction."""
    return _bytes_read(module, instruction, computation) + _bytes_written(module, instruction, computation)


def _bytes_read(module: Module, instruction: Instruction, computation: Computation) -> Bytes:
    called = module.callee(instruction)
    total: Bytes = Counter()
    if called is not None:
        for parameter in called.instructions:
            if parameter.opcode == "parameter":
                total[_space(parameter)] += _bytes_read_of(module, parameter, called)
        return total
    for position, name in enumerate(instruction.operands):
        if operand := computation.by_name.get(name):
            total[_space(operand)] += _operand_bytes(instruction, position, operand)
    return total


def _bytes_read_of(module: Module, source: Instruction, computation: Computation) -> int:
    """Bytes that a fused computation reads of one of its values: the most that any of its users reads."""
    users = (user for user in computation.instructions if source.name in user.operands)
    most = max((_bytes_read_by(module, user, source, computation) for user in users), default=0)
    return min(most, _size(source))


def _bytes_read_by(module: Module, user: Instruction, source: Instruction, computation: Computation) -> int:
    position = user.operands.index(source.name)
    called = module.callee(user)
    if called is not None:
        inside = (i for i in called.instructions if i.opcode == "parameter" and i.attributes == str(position))
        return sum(_bytes_read_of(module, parameter, called) for parameter in inside)
    if user.opcode in _SIZE_PRESERVING and user is not computation.instructions[-1]:
        return _bytes_read_of(module, user, computation)
    return _operand_bytes(user, position, source)


def _operand_bytes(user: Instruction, position: int, operand: Instruction) -> int:
    """Bytes that an instruction reads of one operand."""
    if user.opcode == "tuple" or user.opcode in KINDS or (position == 0 and user.opcode in _UPDATE_OPERAND):
        return 0
    return _size(user) if position == 0 and user.opcode in _SLICES else _size(operand)


def _bytes_written(module: Module, instruction: Instruction, computation: Computation) -> Bytes:
    """Bytes that an instruction writes; of a fusion, what its root writes."""
    called = module.callee(instruction)
    if called is not None and called.instructions:
        return _bytes_written(module, called.instructions[-1], called)
    sources = [computation.by_name[name] for name in instruction.operands if name in computation.by_name]
    if instruction.opcode == "tuple":
        return sum((_bytes_written(module, part, computation) for part in sources), Counter())
    if instruction.opcode in ("bitcast", "reshape") and sources:
        return _bytes_written(module, sources[0], computation)
    if instruction.opcode == "parameter" or instruction.opcode in KINDS:
        return Counter()
    update = _UPDATE_OPERAND.get(instruction.opcode, len(sources))
    written = sources[update] if update < len(sources) else instruction
    return Counter({_space(instruction): _size(written)})


def _size(instruction: Instruction) -> int:
    return sum(shape.size for shape in instruction.shapes)


def _space(instruction: Instruction) -> int:
    return instruction.shapes[0].space if instruction.shapes else 0


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


_MATMULS = {"fwd": 2, "dq": 3, "dkv": 4}
"""Matmuls of the splash kernels: scores and context; scores, their gradient and that of the queries; scores,
their gradient, and those of keys and values. Fused, the last kernel gives the gradient of the queries as well."""

_EFFICIENCY = 0.81
"""Share of the MXU's peak reached in the blocks that are not masked."""

_SOFTMAX_CYCLES = 4.1e-3
"""Cycles of one core for each score, forward: 9.41 ms at 1.75 GHz for 4.03e9 scores."""

_BLOCK = re.compile(r"block_q\\+\": (\d+)")


def attention_kernel_seconds(instruction: Instruction, rates: DeviceRates) -> float | None:
    """Time of an attention kernel; ``None`` for an unknown kernel."""
    found = re.match(r"splash_m[hq]a_(fwd|dq|dkv)", instruction.name)
    layouts = re.search(r"operand_layout_constraints=\{(.*?\})\}", instruction.attributes)
    if found is None or layouts is None:
        return None
    arrays = [s for s in shapes(layouts.group(1)) if len(s.dims) >= 3 and s.dtype in ("bf16", "f32", "f16")]
    if len(arrays) < 2:
        return None
    *batch, queries, width = arrays[0].dims
    keys = arrays[1].dims[-2]
    tile = rates.matmul_tile
    padded = math.ceil(width / tile) * tile
    part = found.group(1)
    scores = math.prod(batch) * queries * keys * _unmasked_share(instruction, keys)
    matmuls = 2 * scores * padded * _matmul_count(instruction, part, arrays[0]) / (_EFFICIENCY * rates.peak_flops)
    softmax = scores * _SOFTMAX_CYCLES / (rates.cores * rates.clock) if part == "fwd" else 0.0
    return max(matmuls, softmax)


def _matmul_count(instruction: Instruction, part: str, queries: Shape) -> int:
    """Matmuls of a kernel. Its results are as large as the queries; what is smaller is scratch space."""
    results = [shape for shape in instruction.shapes if len(shape.dims) >= len(queries.dims)]
    return _MATMULS[part] + (part == "dkv" and len(results) > 2)


def _unmasked_share(instruction: Instruction, keys: int) -> float:
    """Share of the blocks that the causal mask leaves, averaged over the devices of a sequence axis."""
    found = _BLOCK.search(instruction.attributes)
    blocks = keys / int(found.group(1)) if found else keys
    return (blocks + 1) / (2 * blocks)


_MOVES = ("copy", "slice", "dynamic-slice", "dynamic-update-slice", "transpose", "reshape", "broadcast", "pad")


def operation_seconds(
    module: Module, instruction: Instruction, computation: Computation, rates: DeviceRates
) -> tuple[float, bool]:
    """Seconds, and whether they are known: of an unknown kernel only the bytes are."""
    kernel = instruction.opcode == "custom-call"
    seconds = attention_kernel_seconds(instruction, rates) if kernel else None
    if seconds is not None:
        return seconds, True
    matmul = rates.matmul_seconds(matmul_flops(module, instruction, computation))
    memory = rates.memory_seconds(bytes_accessed(module, instruction, computation))
    return max(matmul, memory), not kernel


def operation_category(module: Module, instruction: Instruction) -> str:
    """Category under which an instruction is counted."""
    if instruction.opcode == "custom-call":
        return "kernels"
    inside = {inner.opcode for inner in module.inside(instruction)} | {instruction.opcode}
    if inside & {"convolution", "dot"}:
        return "matmuls"
    if inside & {"gather", "scatter", "sort"}:
        return "gathers and scatters"
    active = inside - {"fusion", "parameter", "constant", "bitcast"}
    return "data movement" if active and active <= set(_MOVES) else "elementwise"
