"""What stands around an operation in the compiled program: what it takes, what takes its result, what it holds."""

import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from asap.core.errors import InsufficientEvidenceError, NotFoundError
from asap.core.text import plain
from asap.profiles.hlo.program import Computation, Instruction, compiled
from asap.profiles.locate import locate
from asap.profiles.xplane.planes import read_planes

_TPU = "/device:TPU:0"
_CAPTURE = "jax.profiler.ProfileOptions().enable_hlo_proto = True"
_EXPRESSION = re.compile(r"%?(?P<name>[\w.-]+) = (?P<shape>.+?) (?P<opcode>[a-z][\w-]*)\((?P<rest>.*)", re.S)
_LAYOUT = re.compile(r"\{[^{}]*\}")
_OPERAND = re.compile(r"%([\w.-]+)")


def computation_of(expressions: Iterable[str]) -> Computation:
    """The instructions that ran, all in one computation; operands that did not run have no opcode."""
    matches = {match["name"]: match for match in map(_EXPRESSION.match, expressions) if match}
    operands = {name: _OPERAND.findall(match["rest"].partition("), ")[0]) for name, match in matches.items()}
    names = dict.fromkeys((*matches, *(name for found in operands.values() for name in found)))
    numbers = {name: number for number, name in enumerate(names)}
    found = {
        number: Instruction(
            number=number,
            name=name,
            opcode=matches[name]["opcode"] if name in matches else "",
            shape=_LAYOUT.sub("", matches[name]["shape"]) if name in matches else "",
            operands=tuple(dict.fromkeys(numbers[each] for each in operands.get(name, ()))),
        )
        for name, number in numbers.items()
    }
    return Computation("", found, 0)


@dataclass(frozen=True)
class Surroundings:
    """An instruction with its neighbours.

    Args:
        program: name of the module.
        around: the computation that it stands in; its name is empty where the profile does not say.
        instruction: itself.
        operands: instructions whose results it takes.
        users: instructions that take its result.
        inside: opcodes in the computations that it calls, with how often each occurs.
    """

    program: str
    around: Computation
    instruction: Instruction
    operands: tuple[Instruction, ...]
    users: tuple[Instruction, ...]
    inside: tuple[tuple[str, int], ...]


def surroundings(path: str | Path, operation: str) -> Surroundings:
    """Look an operation up in the programs of a profile; of several programs that have it, the longest.

    Args:
        path: what :func:`asap.profiles.read_profile` takes.
        operation: its name, as the profile's operations have it.

    Raises:
        NotFoundError: there is no such profile, or no such operation in its programs.
        ProfileError: it cannot be read.
        InsufficientEvidenceError: it carries no HLO.
    """
    is_empty = True
    for file in locate(path).files:
        planes = read_planes(file)
        for program in compiled(planes):
            is_empty = False
            with planes[0].reading():
                if found := program.find(operation):
                    return _around(program.name, *found, [program.computation(each) for each in found[0].called])
        ran = computation_of(name for plane in planes if plane.name == _TPU for name in plane.names.values())
        is_empty = is_empty and not ran.instructions
        if own := next((one for one in ran.instructions.values() if one.opcode and one.name == operation), None):
            return _around("what ran", own, ran, [])
    if is_empty:
        raise InsufficientEvidenceError("the profile carries no HLO", hint=f"capture it with {_CAPTURE}")
    raise NotFoundError("no such instruction in the HLO of the profile", where=plain(operation, 80))


def _around(program: str, own: Instruction, around: Computation, called: Iterable[Computation]) -> Surroundings:
    inside = Counter(one.opcode for each in called for one in each.instructions.values() if one.operands)
    users = tuple(around.users.get(own.number, ()))
    return Surroundings(program, around, own, tuple(around.operands(own)), users, tuple(inside.most_common()))
