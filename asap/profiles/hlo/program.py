"""A compiled program: ``HloProto`` of a profile. Only the instructions that are asked for are decoded, with their
computation.

Field numbers are those of ``xla/service/hlo.proto`` and ``xla/xla_data.proto`` (openxla/xla).
"""

import math
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain

from asap.profiles.xplane.planes import Plane
from asap.profiles.xplane.wire import BYTES, VARINT, Data, Place, fields, signed, text, varint

_MODULE = 1
_NAME, _COMPUTATIONS, _ASSIGNMENT, _FRAMES = 1, 3, 15, 17
_COMPUTATION_DEVICES, _REPLICAS = 3, 1
_INSTRUCTIONS, _COMPUTATION_ID, _ROOT = 2, 5, 6
_SHAPE, _METADATA, _CONVOLUTION = 3, 7, 16
_TEXTS = {_NAME: "name", 2: "opcode", 11: "fusion_kind", 28: "target"}
_DOT, _ID, _OPERANDS, _CALLED = 30, 35, 36, 38
_CONTRACTED, _KERNEL_OUTPUT = 1, 4
_ELEMENT_TYPE, _DIMENSIONS, _PARTS, _LAYOUT, _MEMORY_SPACE = 2, 3, 4, 5, 8
_OP_NAME, _FILE, _LINE, _FRAME = 2, 3, 4, 15
_FRAME_FILES, _FRAME_LOCATIONS, _FRAME_STACK, _LOCATION_LINE = 1, 3, 4, 3
_TYPES = {
    1: "pred", 2: "s8", 3: "s16", 4: "s32", 5: "s64", 6: "u8", 7: "u16", 8: "u32", 9: "u64", 10: "f16", 11: "f32",
    12: "f64", 14: "opaque", 15: "c64", 16: "bf16", 17: "token", 18: "c128", 19: "f8e5m2", 20: "f8e4m3fn", 21: "s4",
    22: "u4", 23: "f8e4m3b11fnuz", 24: "f8e5m2fnuz", 25: "f8e4m3fnuz", 26: "s2", 27: "u2", 28: "f8e4m3", 29: "f8e3m4",
    32: "f4e2m1fn", 33: "f8e8m0fnu",
}  # fmt: skip
_ARRAY = re.compile(r"([a-z]+)(\d*)\w*\[([\d,]*)\]")

DAMAGED = (IndexError, KeyError, ValueError, RecursionError)
"""What reading a message raises that is none."""


@dataclass
class Instruction:
    """An instruction; operands and the computations that it calls are numbers.

    ``contracted`` are the dimensions over which a product sums, ``kernel_output`` the one of a convolution's kernel
    that counts its results.
    """

    number: int = 0
    name: str = ""
    opcode: str = ""
    shape: str = ""
    op_name: str = ""
    source: str = ""
    fusion_kind: str = ""
    target: str = ""
    operands: tuple[int, ...] = ()
    called: tuple[int, ...] = ()
    contracted: tuple[int, ...] = ()
    kernel_output: int | None = None

    @cached_property
    def arrays(self) -> list[tuple[float, tuple[int, ...]]]:
        """Bytes of an element, and dimensions, of each array of the result."""
        found = _ARRAY.findall(self.shape)
        return [(_bytes_of(kind, bits), tuple(map(int, filter(None, sizes.split(","))))) for kind, bits, sizes in found]

    @property
    def elements(self) -> int:
        """Of the first array of the result."""
        return math.prod(self.arrays[0][1]) if self.arrays else 0

    @property
    def bytes(self) -> float:
        """Of the result."""
        return sum(width * math.prod(sizes) for width, sizes in self.arrays)


def _bytes_of(kind: str, bits: str) -> float:
    return int(bits) / 8 if bits else float(kind == "pred")


@dataclass(frozen=True)
class Computation:
    """Its instructions by number, in their order, and the number of the one whose result it returns."""

    name: str
    instructions: Mapping[int, Instruction]
    root: int

    @cached_property
    def users(self) -> Mapping[int, Sequence[Instruction]]:
        """By number of an instruction, those that take its result."""
        found: dict[int, list[Instruction]] = defaultdict(list)
        for instruction in self.instructions.values():
            for number in dict.fromkeys(instruction.operands):
                found[number].append(instruction)
        return found

    def operands(self, instruction: Instruction) -> list[Instruction]:
        """The instructions whose results an instruction takes."""
        return [self.instructions[number] for number in instruction.operands if number in self.instructions]


def protos_of(planes: Iterable[Plane]) -> Iterator[tuple[int, bytes]]:
    """The compiled programs of a file, with their numbers."""
    for plane in (plane for plane in planes if plane.name == "/host:metadata"):
        for number in plane.names:
            stats = plane.description(number).stats
            key, proto = stats.get("program_id", number), stats.get("Hlo Proto", stats.get("hlo_proto"))
            if isinstance(proto, bytes) and isinstance(key, int):
                yield key, proto


def compiled(planes: Sequence[Plane]) -> "list[CompiledProgram]":
    """The programs of a file, the longest first."""
    protos = sorted((proto for _, proto in protos_of(planes)), key=len, reverse=True)
    with planes[0].reading():
        return [CompiledProgram(proto) for proto in protos]


def instructions_of(
    wanted: Iterable[tuple[int, str]], planes: Sequence[Plane]
) -> "Iterator[tuple[tuple[int, str], Instruction, Computation, CompiledProgram]]":
    """Those of the wanted numbers of a program and names of an instruction that the programs of a file hold."""
    wanted = [*wanted]
    numbers = {number for number, _ in wanted}
    programs = {each: CompiledProgram(proto) for each, proto in reversed([*protos_of(planes)]) if each in numbers}
    for number, name in wanted:
        if (program := programs.get(number)) and (found := program.find(name)):
            yield (number, name), *found, program


class CompiledProgram:
    """A module.

    Raises:
        IndexError, KeyError: the bytes are not a message; its methods too, see :data:`DAMAGED`.
    """

    def __init__(self, data: Data):
        self._data, self.name = data, ""
        self._places: dict[int, Place] = {}
        self._frames = self._assignment = Place(0, 0)
        self._computations: dict[int, Computation] = {}
        for module in (inside for number, _, _, inside in fields(data, Place(0, len(data))) if number == _MODULE):
            for part, _, _, inside in fields(data, module):
                if part == _NAME:
                    self.name = text(data, inside)
                elif part == _COMPUTATIONS:
                    self._places[_integer(data, inside, _COMPUTATION_ID)] = inside
                elif part == _FRAMES:
                    self._frames = inside
                elif part == _ASSIGNMENT:
                    self._assignment = inside

    @property
    def devices(self) -> tuple[int, ...]:
        """Those that run it, in the order in which it numbers them; none where it does not say."""
        parts = fields(self._data, self._assignment)
        found = [list(_listed(self._data, of, _REPLICAS)) for part, _, _, of in parts if part == _COMPUTATION_DEVICES]
        return tuple(chain.from_iterable(zip(*found, strict=True)))

    def computation(self, number: int) -> Computation:
        """The computation of this number; an empty one if there is none."""
        if number not in self._computations:
            self._computations[number] = self._computation(self._places.get(number, Place(0, 0)))
        return self._computations[number]

    @property
    def numbers(self) -> Iterable[int]:
        """Of its computations, in their order."""
        return self._places

    def find(self, name: str) -> tuple[Instruction, Computation] | None:
        """An instruction by its name, and the computation that it stands in."""
        around = self.computation(self._holders[name]) if name in self._holders else None
        found = (one for one in around.instructions.values() if one.name == name) if around else iter(())
        return next(((one, around) for one in found if around), None)

    @cached_property
    def _holders(self) -> dict[str, int]:
        """The number of the computation of each instruction: its name is its first field."""
        holders = {}
        for number, place in self._places.items():
            for part, _, _, inside in fields(self._data, place):
                if part == _INSTRUCTIONS:
                    first, _, _, name = next(fields(self._data, inside))
                    if first == _NAME:
                        holders[text(self._data, name)] = number
        return holders

    @cached_property
    def _lines(self) -> list[str]:
        """File and line of each frame of a stack."""
        parts: dict[int, list[Place]] = defaultdict(list)
        for number, _, _, inside in fields(self._data, self._frames):
            parts[number].append(inside)
        files = [text(self._data, inside) for inside in parts[_FRAME_FILES]]
        locations = [
            f"{files[_integer(self._data, inside, 1) - 1]}:{_integer(self._data, inside, _LOCATION_LINE)}"
            for inside in parts[_FRAME_LOCATIONS]
        ]
        return [locations[_integer(self._data, inside, 1) - 1] for inside in parts[_FRAME_STACK]]

    def _computation(self, place: Place) -> Computation:
        name, root, found = "", 0, {}
        for part, _, value, inside in fields(self._data, place):
            if part == _NAME:
                name = text(self._data, inside)
            elif part == _INSTRUCTIONS:
                instruction = self._instruction(inside)
                found[instruction.number] = instruction
            elif part == _ROOT:
                root = signed(value)
        return Computation(name, found, root)

    def _instruction(self, place: Place) -> Instruction:
        data, found = self._data, Instruction()
        for part, kind, value, inside in fields(data, place):
            if part in _TEXTS:
                setattr(found, _TEXTS[part], text(data, inside))
            elif part == _SHAPE:
                found.shape = _shape(data, inside)
            elif part == _METADATA:
                found.op_name, found.source = self._metadata(inside)
            elif part == _ID:
                found.number = signed(value)
            elif part == _OPERANDS:
                found.operands += tuple(_integers(data, kind, value, inside))
            elif part == _CALLED:
                found.called += tuple(_integers(data, kind, value, inside))
            elif part == _DOT:
                found.contracted = tuple(_listed(data, inside, _CONTRACTED))
            elif part == _CONVOLUTION:
                found.kernel_output = _integer(data, inside, _KERNEL_OUTPUT)
        return found

    def _metadata(self, place: Place) -> tuple[str, str]:
        """The path of the user's operation, and the file and line of the code."""
        data, op_name, file = self._data, "", ""
        for part, kind, _, inside in fields(data, place):
            if part == _OP_NAME and kind == BYTES:
                op_name = text(data, inside)
            elif part == _FILE and kind == BYTES:
                file = text(data, inside)
        line, frame = _integer(data, place, _LINE), _integer(data, place, _FRAME)
        if not file and 0 < frame <= len(self._lines):
            return op_name, self._lines[frame - 1]
        return op_name, f"{file}:{line}" if file and line else file


def _shape(data: Data, place: Place) -> str:
    """``bf16[8,128]``, ``(bf16[8], f32[8])``; another memory than HBM is named: ``bf16[8]{S(5)}``."""
    kind, dimensions, parts, space = "", [], [], 0
    for part, wire, value, inside in fields(data, place):
        if part == _ELEMENT_TYPE:
            kind = _TYPES.get(value, "")
        elif part == _DIMENSIONS:
            dimensions += _integers(data, wire, value, inside)
        elif part == _PARTS:
            parts.append(_shape(data, inside))
        elif part == _LAYOUT:
            space = _integer(data, inside, _MEMORY_SPACE)
    array = f"{kind}[{','.join(map(str, dimensions))}]" + (f"{{S({space})}}" if space else "")
    return f"({', '.join(parts)})" if parts else array


def _integer(data: Data, place: Place, wanted: int) -> int:
    """An integer field of a message; zero where it has none."""
    parts = fields(data, place)
    return next((signed(value) for number, kind, value, _ in parts if (number, kind) == (wanted, VARINT)), 0)


def _listed(data: Data, place: Place, wanted: int) -> Iterator[int]:
    """A repeated integer field of a message."""
    for number, kind, value, inside in fields(data, place):
        if number == wanted:
            yield from _integers(data, kind, value, inside)


def _integers(data: Data, kind: int, value: int, place: Place) -> Iterator[int]:
    """A repeated integer, packed or one by one."""
    if kind != BYTES:
        yield signed(value)
        return
    position, end = place
    while position < end:
        number, position = varint(data, position)
        yield signed(number)
