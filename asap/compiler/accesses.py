"""Bytes that an instruction moves, in each memory: what it reads of its operands, and what it writes.

A fusion that takes a slice of an array reads the slice, and one that puts a slice into an array writes the slice.
"""

from collections import Counter
from collections.abc import Iterator

from asap.compiler.hlo import Computation, Instruction, Module

_SAME = ("bitcast", "reshape")
_PART = ("dynamic-slice", "slice", "gather")
_UPDATE = {"dynamic-update-slice": 1, "scatter": 2}
"""Operand that is put into the first one."""

Bytes = Counter[int]
"""By memory space: 0 is HBM, 1 the memory on the chip."""


def accesses(module: Module, instruction: Instruction, computation: Computation) -> Bytes:
    """Bytes read and written by one run of an instruction."""
    return _written(module, instruction, computation) + _read(module, instruction, computation)


def _read(module: Module, instruction: Instruction, computation: Computation) -> Bytes:
    called = module.callee(instruction)
    total: Bytes = Counter()
    if called is not None:
        for inner in called.instructions:
            if inner.opcode == "parameter":
                total += _read_of(module, inner, called)
        return total
    for position, name in enumerate(instruction.operands):
        operand = computation.by_name.get(name)
        if operand is not None:
            total += _share(instruction, position, operand, computation)
    return total


def _read_of(module: Module, source: Instruction, computation: Computation) -> Bytes:
    """Bytes that a fused computation reads of a parameter: the largest that one of its users takes."""
    found = [_taken(module, user, source, computation) for user in _users(source, computation)]
    return max(found, key=lambda taken: taken.total(), default=Counter())


def _taken(module: Module, user: Instruction, source: Instruction, computation: Computation) -> Bytes:
    if user.opcode in _SAME:
        return _read_of(module, user, computation)
    position = user.operands.index(source.name)
    called = module.callee(user)
    if called is None:
        return _share(user, position, source, computation)
    inner = next((i for i in called.instructions if i.opcode == "parameter" and i.attributes == str(position)), None)
    return _read_of(module, inner, called) if inner is not None else _all(source)


def _share(user: Instruction, position: int, operand: Instruction, computation: Computation) -> Bytes:
    """What an instruction reads of one operand."""
    if position == 0 and user.opcode in _UPDATE:
        return Counter()
    if position == 0 and user.opcode in _PART:
        space = operand.shapes[0].space if operand.shapes else 0
        return Counter({space: sum(shape.size for shape in user.shapes)})
    return _all(operand)


def _written(module: Module, instruction: Instruction, computation: Computation) -> Bytes:
    called = module.callee(instruction)
    if called is not None and called.instructions:
        return _written_root(module, called.instructions[-1], called)
    return _written_root(module, instruction, computation)


def _written_root(module: Module, root: Instruction, computation: Computation) -> Bytes:
    while root.opcode in _SAME and root.operands and root.operands[0] in computation.by_name:
        root = computation.by_name[root.operands[0]]
    if root.opcode == "tuple":
        parts = (computation.by_name[name] for name in root.operands if name in computation.by_name)
        return sum((_written_root(module, part, computation) for part in parts), Counter())
    called = module.callee(root)
    if called is not None and called.instructions:
        return _written_root(module, called.instructions[-1], called)
    if root.opcode in _UPDATE and len(root.operands) > _UPDATE[root.opcode]:
        update = computation.by_name.get(root.operands[_UPDATE[root.opcode]])
        space = root.shapes[0].space if root.shapes else 0
        return Counter({space: sum(shape.size for shape in update.shapes)}) if update is not None else _all(root)
    return _all(root)


def _users(source: Instruction, computation: Computation) -> Iterator[Instruction]:
    return (user for user in computation.instructions if source.name in user.operands)


def _all(instruction: Instruction) -> Bytes:
    total: Bytes = Counter()
    for shape in instruction.shapes:
        total[shape.space] += shape.size
    return total
