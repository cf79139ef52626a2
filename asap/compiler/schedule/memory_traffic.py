"""Bytes that an instruction reads and writes, by memory space.

A fusion that slices an array reads the slice, and one that updates a slice writes the slice. What it passes through is
not counted, and neither is a collective inside, which has a time of its own.
"""

from collections import Counter

from asap.compiler.schedule.collectives import KINDS
from asap.compiler.schedule.hlo import Computation, Instruction, Module

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
