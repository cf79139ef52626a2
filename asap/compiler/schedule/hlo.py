"""The scheduled HLO text of a compiled program: computations, instructions, shapes, loops.

Only what the simulation needs is read. The order of instructions in a computation is the order in which they run
(``is_scheduled=true``).
"""

import math
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property

from asap.core.errors import BadInputError

_HEADER = re.compile(r"(ENTRY )?%([^\s(]+) \(.*\) -> .*\{$")
_START = re.compile(r"\s+(ROOT )?%([^\s=]+) = ")
_OPCODE = re.compile(r" ([a-z][a-z0-9-]*)\(")
_SHAPE = re.compile(r"\b(pred|bf16|token|[a-z]+\d+[a-z0-9]*)\[([\d,<=]*)\](\{[^}]*\})?")
_NAME = re.compile(r"%([^\s,)]+)")
_BITS = re.compile(r"\d+")


@dataclass(frozen=True)
class Shape:
    """An array: its element type, dimensions, and the memory space (0 is HBM)."""

    dtype: str
    dims: tuple[int, ...]
    space: int

    @property
    def size(self) -> int:
        """Bytes without padding."""
        return math.prod(self.dims) * _bits(self.dtype) // 8


@dataclass(frozen=True)
class Instruction:
    """One line of a computation.

    ``attributes`` is the text after the operands; of a constant its value, of a parameter its number.
    """

    name: str
    opcode: str
    result: str
    operands: tuple[str, ...]
    attributes: str

    @cached_property
    def shapes(self) -> tuple[Shape, ...]:
        """The arrays of its result."""
        return shapes(self.result)

    def called(self, role: str) -> str | None:
        """The computation behind ``calls``, ``condition``, ``body`` or ``to_apply``."""
        found = re.search(rf"\b{role}=%([^\s,}}]+)", self.attributes)
        return found.group(1) if found else None

    def attribute(self, name: str) -> str | None:
        """A quoted attribute such as ``custom_call_target`` or ``op_name``."""
        found = re.search(rf'"?\b{name}"?[=:]"([^"]*)"', self.attributes)
        return found.group(1) if found else None


@dataclass
class Computation:
    """Instructions in the order in which they run."""

    name: str
    instructions: list[Instruction] = field(default_factory=list)

    @cached_property
    def by_name(self) -> dict[str, Instruction]:
        """Instructions by name."""
        return {instruction.name: instruction for instruction in self.instructions}


@dataclass(frozen=True)
class Module:
    """A compiled program."""

    computations: dict[str, Computation]
    entry: Computation

    def callee(self, instruction: Instruction, role: str = "calls") -> Computation | None:
        """The computation that an instruction calls."""
        name = instruction.called(role)
        return self.computations.get(name) if name else None

    def inside(self, instruction: Instruction) -> Iterator[Instruction]:
        """The instructions of a fusion, of those that it calls, and so on."""
        called = self.callee(instruction)
        for inner in called.instructions if called else ():
            yield inner
            yield from self.inside(inner)


def read_module(text: str) -> Module:
    """Parse the text of a scheduled module.

    Raises:
        BadInputError: it is not scheduled HLO.
    """
    if "is_scheduled=true" not in text.partition("\n")[0]:
        raise BadInputError("is not scheduled HLO", where="compiled program")
    computations: dict[str, Computation] = {}
    entry: Computation | None = None
    current: Computation | None = None
    for line in _joined_lines(text):
        header = _HEADER.match(line)
        if header:
            current = computations[header.group(2)] = Computation(header.group(2))
            entry = current if header.group(1) else entry
        elif current is not None and (start := _START.match(line)):
            current.instructions.append(_instruction(start.group(2), line[start.end() :]))
    if entry is None:
        raise BadInputError("has no entry computation", where="compiled program")
    return Module(computations, entry)


def shapes(text: str) -> tuple[Shape, ...]:
    """``(bf16[8,128]{1,0:T(8,128)S(1)}, u32[])`` → two shapes."""
    found = []
    for dtype, dims, layout in _SHAPE.findall(text):
        space = re.search(r"S\((\d+)\)", layout)
        lengths = tuple(int(length.lstrip("<=")) for length in dims.split(",") if length)
        found.append(Shape(dtype, lengths, int(space.group(1)) if space else 0))
    return tuple(found)


def _joined_lines(text: str) -> Iterator[str]:
    """Lines; those broken by a quoted newline are joined again."""
    held = ""
    for line in text.splitlines():
        if _HEADER.match(line) or _START.match(line) or line.rstrip() == "}":
            if held:
                yield held
            held = line
        else:
            held += " " + line
    if held:
        yield held


def _instruction(name: str, rest: str) -> Instruction:
    found = _OPCODE.search(" " + rest if rest.startswith("(") else rest)
    if found is None:
        return Instruction(name, "", rest, (), "")
    shift = 1 if rest.startswith("(") else 0
    end = found.end() - shift
    close = rest.find(")", end)
    inner = rest[end:close]
    opcode = found.group(1)
    attributes = inner if opcode in ("constant", "parameter") else rest[close + 1 :]
    return Instruction(name, opcode, rest[: found.start() - shift], tuple(_NAME.findall(inner)), attributes)


def _bits(dtype: str) -> int:
    if dtype in ("pred",):
        return 8
    found = _BITS.search(dtype)
    return int(found.group()) if found else 0


_KNOWN_TRIP_COUNT = re.compile(r'"known_trip_count":\{"n":"(\d+)"\}')
_INDEX = re.compile(r"\bindex=(\d+)")


def trip_count(module: Module, loop: Instruction) -> int | None:
    """Passes through the body of a ``while``; ``None`` where its counter cannot be read."""
    if known := _KNOWN_TRIP_COUNT.search(loop.attributes):
        return int(known.group(1))
    condition, body = module.callee(loop, "condition"), module.callee(loop, "body")
    if condition is None or body is None or not condition.instructions:
        return None
    compare = condition.instructions[-1]
    if "direction=LT" not in compare.attributes or len(compare.operands) != 2:
        return None
    counter, bound = (condition.by_name.get(name) for name in compare.operands)
    place = _INDEX.search(counter.attributes) if counter else None
    if place is None or bound is None:
        return None
    index = int(place.group(1))
    values = _constant(bound), _start(module, loop, index), _increment(body, index)
    if None in values:
        return None
    end, start, increment = (value or 0 for value in values)
    return math.ceil((end - start) / increment) if increment > 0 else None


def _start(module: Module, loop: Instruction, index: int) -> int | None:
    """What the counter is before the loop."""
    caller = next((c for c in module.computations.values() if loop.name in c.by_name), None)
    return _constant(_element(caller, loop.operands[0], index)) if caller and loop.operands else None


def _increment(body: Computation, index: int) -> int | None:
    """What a pass adds to the counter."""
    incremented = _element(body, body.instructions[-1].name, index)
    if incremented is None or incremented.opcode != "add":
        return None
    addends = [_constant(_origin(body, name)) for name in incremented.operands]
    return next((addend for addend in addends if addend is not None), None)


def _element(computation: Computation, name: str, index: int) -> Instruction | None:
    """An element of a tuple that is put together in a computation, where it is made."""
    whole = computation.by_name.get(name)
    if whole is None or whole.opcode != "tuple" or index >= len(whole.operands):
        return None
    return _origin(computation, whole.operands[index])


def _origin(computation: Computation, name: str) -> Instruction | None:
    """What an instruction is a copy of."""
    found = computation.by_name.get(name)
    while found is not None and found.opcode in ("copy", "bitcast") and found.operands:
        found = computation.by_name.get(found.operands[0])
    return found


def _constant(instruction: Instruction | None) -> int | None:
    said = instruction.attributes.strip() if instruction and instruction.opcode == "constant" else ""
    return int(said) if said.lstrip("-").isdigit() else None
