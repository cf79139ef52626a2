"""A compiled program: ``HloProto`` of a profile, decoded as far as an engineer asks about it.

Field numbers are those of ``xla/service/hlo.proto`` and ``xla/xla_data.proto`` (openxla/xla).
"""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from asap.profiles.xplane.wire import BYTES, VARINT, Place, fields, signed, text, varint

_MODULE = 1
_NAME, _COMPUTATIONS = 1, 3
_INSTRUCTIONS, _COMPUTATION_ID = 2, 5
_OPCODE, _SHAPE, _METADATA, _TARGET, _ID, _OPERANDS, _CALLED = 2, 3, 7, 28, 35, 36, 38
_ELEMENT_TYPE, _DIMENSIONS, _PARTS = 2, 3, 4
_OP_NAME, _FILE, _LINE = 2, 3, 4
_TYPES = {
    1: "pred", 2: "s8", 3: "s16", 4: "s32", 5: "s64", 6: "u8", 7: "u16", 8: "u32", 9: "u64", 10: "f16", 11: "f32",
    12: "f64", 14: "opaque", 15: "c64", 16: "bf16", 17: "token", 18: "c128", 19: "f8e5m2", 20: "f8e4m3fn", 21: "s4",
    22: "u4",
}  # fmt: skip


@dataclass(frozen=True)
class Instruction:
    """An instruction of a program.

    Args:
        name: as the profile's operations are named: ``fusion.123``.
        opcode: ``fusion``, ``all-reduce``, …
        shape: of its result: ``bf16[8,128]``.
        operands: names of the instructions whose results it takes.
        called: names of the computations that it calls: the body of a fusion or of a loop.
        op_name: path of the user's operation that it comes from.
        source: file and line of the user's code.
    """

    name: str
    opcode: str
    shape: str
    operands: tuple[str, ...] = ()
    called: tuple[str, ...] = ()
    op_name: str = ""
    source: str = ""


@dataclass(frozen=True)
class Program:
    """A module: its name, and the instructions of each computation in their order."""

    name: str
    computations: dict[str, tuple[Instruction, ...]]


@dataclass
class _Raw:
    """An instruction whose references are numbers still."""

    number: int = 0
    name: str = ""
    opcode: str = ""
    shape: str = ""
    op_name: str = ""
    source: str = ""
    operands: tuple[int, ...] = ()
    called: tuple[int, ...] = ()


def read_program(data: bytes) -> Program:
    """Decode an ``HloProto``.

    Raises:
        IndexError, KeyError: the bytes are not a message.
    """
    name, names, computations = "", {}, []
    for number, _, _, module in fields(data, Place(0, len(data))):
        if number != _MODULE:
            continue
        for part, _, _, inside in fields(data, module):
            if part == _NAME:
                name = text(data, inside)
            elif part == _COMPUTATIONS:
                key, called, instructions = _computation(data, inside)
                names[key] = called
                computations.append((called, instructions))
    return Program(name, {called: _resolved(instructions, names) for called, instructions in computations})


def _resolved(instructions: list[_Raw], computations: dict[int, str]) -> tuple[Instruction, ...]:
    names = {one.number: one.name for one in instructions}
    return tuple(
        Instruction(
            one.name, one.opcode, one.shape,
            tuple(names[number] for number in one.operands if number in names),
            tuple(computations[number] for number in one.called if number in computations),
            one.op_name, one.source,
        )
        for one in instructions
    )  # fmt: skip


def _computation(data: bytes, place: Place) -> tuple[int, str, list[_Raw]]:
    number, name, instructions = 0, "", []
    for part, _, value, inside in fields(data, place):
        if part == _NAME:
            name = text(data, inside)
        elif part == _INSTRUCTIONS:
            instructions.append(_instruction(data, inside))
        elif part == _COMPUTATION_ID:
            number = signed(value)
    return number, name, instructions


def _instruction(data: bytes, place: Place) -> _Raw:
    found = _Raw()
    for part, kind, value, inside in fields(data, place):
        if part == _NAME:
            found.name = text(data, inside)
        elif part == _OPCODE:
            found.opcode = text(data, inside)
        elif part == _SHAPE:
            found.shape = _shape(data, inside)
        elif part == _METADATA:
            found.op_name, found.source = _metadata(data, inside)
        elif part == _ID:
            found.number = signed(value)
        elif part == _OPERANDS:
            found.operands += tuple(_integers(data, kind, value, inside))
        elif part == _CALLED:
            found.called += tuple(_integers(data, kind, value, inside))
    return found


def _metadata(data: bytes, place: Place) -> tuple[str, str]:
    op_name, file, line = "", "", 0
    for part, kind, value, inside in fields(data, place):
        if part == _OP_NAME and kind == BYTES:
            op_name = text(data, inside)
        elif part == _FILE and kind == BYTES:
            file = text(data, inside)
        elif part == _LINE and kind == VARINT:
            line = value
    return op_name, f"{file}:{line}" if file and line else file


def _shape(data: bytes, place: Place) -> str:
    kind, dimensions, parts = "", [], []
    for part, wire, value, inside in fields(data, place):
        if part == _ELEMENT_TYPE:
            kind = _TYPES.get(value, "")
        elif part == _DIMENSIONS:
            dimensions += _integers(data, wire, value, inside)
        elif part == _PARTS:
            parts.append(_shape(data, inside))
    return f"({', '.join(parts)})" if parts else f"{kind}[{','.join(map(str, dimensions))}]"


def _integers(data: bytes, kind: int, value: int, place: Place) -> Iterator[int]:
    """A repeated integer, packed or one by one."""
    if kind != BYTES:
        yield signed(value)
        return
    position, end = place
    while position < end:
        number, position = varint(data, position)
        yield signed(number)


_EXPRESSION = re.compile(r"%?(?P<name>[\w.-]+) = (?P<shape>.+?) (?P<opcode>[a-z][\w-]*)\((?P<rest>.*)", re.S)
_LAYOUT = re.compile(r"\{[^{}]*\}")
_OPERAND = re.compile(r"%([\w.-]+)")
_CALLEES = re.compile(r"\b(?:calls|body|to_apply)=%?([\w.-]+)")


def program_of(expressions: Iterable[str], name: str) -> Program | None:
    """A program of the instructions that ran, all in one computation; ``None`` if there is no expression."""
    found = tuple(one for one in map(_named_instruction, expressions) if one is not None)
    return Program(name, {"": found}) if found else None


def _named_instruction(expression: str) -> Instruction | None:
    match = _EXPRESSION.match(expression)
    if match is None:
        return None
    arguments, _, attributes = match["rest"].partition("), ")
    return Instruction(
        match["name"],
        match["opcode"],
        _LAYOUT.sub("", match["shape"]),
        tuple(dict.fromkeys(_OPERAND.findall(arguments))),
        tuple(_CALLEES.findall(attributes)),
    )
