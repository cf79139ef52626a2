"""What an instruction of a compiled program costs: FLOPs, and the least bytes that cross HBM.

As ``HloCostAnalysis`` of XLA counts them: a fusion reads its operands, of those that it only slices the slices, and
writes its results. An elementwise operation is one FLOP for each element, which XLA weighs by type and chip, and a
convolution all of its window, of which XLA leaves out what lies in the padding.
"""

import math
import re
from typing import NamedTuple

from asap.profiles.hlo.program import CompiledProgram, Computation, Instruction

_ARITHMETIC = frozenset(
    (
        "abs", "add", "and", "atan2", "cbrt", "ceil", "clamp", "compare", "cosine", "divide", "erf", "exponential",
        "exponential-minus-one", "floor", "is-finite", "log", "log-plus-one", "logistic", "maximum", "minimum",
        "multiply", "negate", "not", "or", "popcnt", "power", "remainder", "round-nearest-afz", "round-nearest-even",
        "rsqrt", "sign", "sine", "sqrt", "subtract", "tan", "tanh", "xor",
    )
)  # fmt: skip
_ELEMENTWISE = _ARITHMETIC | {"convert", "select"}
_FORMATTING = ("copy", "transpose", "reshape", "dynamic-reshape")
_SLICING = ("dynamic-slice", "slice", "gather")
_UPDATING = "dynamic-update-slice"
_LIBRARY_PRODUCT = re.compile(r"__cublas\$(?:gemm|lt\$matmul(?:\$f8)?)")


class Costs(NamedTuple):
    """Of one run."""

    flops: float
    bytes: float


def category_of(instruction: Instruction) -> str:
    """As ``HloInstruction::ToCategory`` of XLA names it: ``loop fusion``, ``data formatting``, or the opcode."""
    if instruction.opcode == "fusion":
        return f"{instruction.fusion_kind.removeprefix('k').lower()} fusion"
    if instruction.opcode in _FORMATTING:
        return "data formatting"
    return "non-fusion elementwise" if instruction.opcode in _ELEMENTWISE else instruction.opcode


def expression_of(instruction: Instruction, around: Computation) -> str:
    """The instruction as HLO prints it, without layouts."""
    operands = ", ".join(f"{each.shape} %{each.name}" for each in around.operands(instruction))
    kind = f", kind={instruction.fusion_kind}" if instruction.fusion_kind else ""
    target = f', custom_call_target="{instruction.target}"' if instruction.target else ""
    return f"%{instruction.name} = {instruction.shape} {instruction.opcode}({operands}){kind}{target}"


def costs_of(instruction: Instruction, around: Computation, program: CompiledProgram) -> Costs:
    """The costs of an instruction that runs by itself; zero for a custom call that is neither a product nor a
    convolution."""
    if _LIBRARY_PRODUCT.fullmatch(instruction.target):
        return _of_product(instruction, *around.operands(instruction)[:2])
    if instruction.opcode == "custom-call" and instruction.kernel_output is None:
        return Costs(0.0, 0.0)
    return Costs(_flops(instruction, around, program, {}), _bytes(instruction, around, program))


def _of_product(result: Instruction, *operands: Instruction) -> Costs:
    """A product in a vendor's library, its operands and its result each moved once; scales and biases are none.

    The sizes determine the length ``k`` that is summed over: ``mk * kn / mn = k²``, in each of the products that the
    leading dimensions count.
    """
    shapes = [each.arrays[0] for each in (*operands, result) if each.arrays]
    batches = {sizes[:-2] for _, sizes in shapes}
    if len(shapes) < 3 or len(batches) > 1 or not result.elements:
        return Costs(0.0, 0.0)
    left, right, product = (math.prod(sizes) for _, sizes in shapes)
    squared = left * right / (product * math.prod(batches.pop()))
    depth = math.isqrt(round(squared))
    if depth * depth != squared:
        return Costs(0.0, 0.0)
    return Costs(2.0 * product * depth, sum(width * math.prod(sizes) for width, sizes in shapes))


def _flops(instruction: Instruction, around: Computation, program: CompiledProgram, known: dict[int, float]) -> float:
    """``known`` holds the FLOPs of computations that were counted, and zero for those that are being counted."""
    operands = around.operands(instruction)
    if instruction.opcode == "fusion":
        return sum(_inside(number, program, known) for number in instruction.called)
    if instruction.opcode == "dot" and operands:
        depth = math.prod(operands[0].arrays[0][1][axis] for axis in instruction.contracted)
        return 2.0 * instruction.elements * depth
    if instruction.kernel_output is not None and len(operands) > 1:
        kernel = operands[1].arrays[0][1]
        return 2.0 * instruction.elements * math.prod(kernel) / max(kernel[instruction.kernel_output], 1)
    if instruction.opcode == "reduce" and operands:
        return float(operands[0].elements)
    return float(instruction.elements) if instruction.opcode in _ARITHMETIC else 0.0


def _inside(number: int, program: CompiledProgram, known: dict[int, float]) -> float:
    if number not in known:
        known[number] = 0.0
        fused = program.computation(number)
        known[number] = sum(_flops(each, fused, program, known) for each in fused.instructions.values())
    return known[number]


def _bytes(instruction: Instruction, around: Computation, program: CompiledProgram) -> float:
    operands = around.operands(instruction)
    if instruction.opcode in _SLICING:
        return 2 * instruction.bytes
    if instruction.opcode == _UPDATING and len(operands) > 1:
        return 2 * operands[1].bytes
    if instruction.opcode == "fusion" and instruction.called:
        return _of_fusion(program.computation(instruction.called[0]))
    width, sizes = instruction.arrays[0] if instruction.arrays else (0.0, ())
    result = width * math.prod(sizes) if instruction.target else instruction.bytes
    return result + sum(each.bytes for each in operands)


def _of_fusion(fused: Computation) -> float:
    root = fused.instructions[fused.root]
    results = fused.operands(root) if root.opcode == "tuple" else [root]
    given = (each for each in fused.instructions.values() if each.opcode == "parameter")
    return sum(_written(each, fused) for each in results) + sum(_read(each, fused) for each in given)


def _written(result: Instruction, fused: Computation) -> float:
    """Bytes of a result; of one that is updated in place, those that are new."""
    operands = fused.operands(result)
    if result.opcode == "bitcast" and operands:
        return _written(operands[0], fused)
    return operands[1].bytes if result.opcode == _UPDATING and len(operands) > 1 else result.bytes


def _read(given: Instruction, fused: Computation) -> float:
    """Bytes that are read of an operand: of one that is only sliced, the slices."""
    total = 0.0
    for user in fused.users.get(given.number, ()):
        is_whole = user.operands[0] == given.number
        if user.opcode == "bitcast":
            total += _read(user, fused)
        elif user.opcode in _SLICING and is_whole:
            total += user.bytes
        elif user.opcode != _UPDATING or not is_whole:
            return given.bytes
    return min(total, given.bytes)
