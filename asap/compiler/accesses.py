"""Bytes that an instruction moves, in each memory: what it reads of its operands, and what it writes.

A fusion that takes a slice of an array reads the slice, and one that puts a slice into an array writes the slice. What
it hands through is not moved, and a collective inside has a time of its own.
"""

from collections import Counter

from asap.compiler.hlo import Computation, Instruction, Module
from asap.compiler.transfers import KINDS

_RELABELLED = ("bitcast", "reshape", "transpose", "pad", "convert", "copy")
"""Inside a fusion no more of their operand is read than is taken of their result."""

_PART = ("dynamic-slice", "slice", "gather")
_UPDATE = {"dynamic-update-slice": 1, "scatter": 2}
"""Operand that is put into the first one."""

Bytes = Counter[int]
"""By memory space: 0 is HBM, 1 the memory on the chip."""


def accesses(module: Module, instruction: Instruction, computation: Computation) -> Bytes:
    """Bytes read and written by one run of an instruction."""
    return _read(module, instruction, computation) + _written(module, instruction, computation)


def _read(module: Module, instruction: Instruction, computation: Computation) -> Bytes:
    called = module.callee(instruction)
    total: Bytes = Counter()
    if called is not None:
        for parameter in called.instructions:
            if parameter.opcode == "parameter":
                total[_space(parameter)] += _taken(module, parameter, called)
        return total
    for position, name in enumerate(instruction.operands):
        if operand := computation.by_name.get(name):
            total[_space(operand)] += _share(instruction, position, operand)
    return total


def _taken(module: Module, source: Instruction, computation: Computation) -> int:
    """Bytes that a fused computation reads of one of its values: the most that one of its users takes."""
    users = (user for user in computation.instructions if source.name in user.operands)
    most = max((_taken_by(module, user, source, computation) for user in users), default=0)
    return min(most, _size(source))


def _taken_by(module: Module, user: Instruction, source: Instruction, computation: Computation) -> int:
    position = user.operands.index(source.name)
    called = module.callee(user)
    if called is not None:
        inside = (i for i in called.instructions if i.opcode == "parameter" and i.attributes == str(position))
        return sum(_taken(module, parameter, called) for parameter in inside)
    if user.opcode in _RELABELLED and user is not computation.instructions[-1]:
        return _taken(module, user, computation)
    return _share(user, position, source)


def _share(user: Instruction, position: int, operand: Instruction) -> int:
    """Bytes that an instruction reads of one operand."""
    if user.opcode == "tuple" or user.opcode in KINDS or (position == 0 and user.opcode in _UPDATE):
        return 0
    return _size(user) if position == 0 and user.opcode in _PART else _size(operand)


def _written(module: Module, instruction: Instruction, computation: Computation) -> Bytes:
    """Bytes that an instruction writes, or what stands at the end of the fusion that it is."""
    called = module.callee(instruction)
    if called is not None and called.instructions:
        return _written(module, called.instructions[-1], called)
    sources = [computation.by_name[name] for name in instruction.operands if name in computation.by_name]
    if instruction.opcode == "tuple":
        return sum((_written(module, part, computation) for part in sources), Counter())
    if instruction.opcode in ("bitcast", "reshape") and sources:
        return _written(module, sources[0], computation)
    if instruction.opcode == "parameter" or instruction.opcode in KINDS:
        return Counter()
    update = _UPDATE.get(instruction.opcode, len(sources))
    written = sources[update] if update < len(sources) else instruction
    return Counter({_space(instruction): _size(written)})


def _size(instruction: Instruction) -> int:
    return sum(shape.size for shape in instruction.shapes)


def _space(instruction: Instruction) -> int:
    return instruction.shapes[0].space if instruction.shapes else 0
