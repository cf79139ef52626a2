"""Instructions as a TPU profile writes them into the names of its events: ``%add.1 = f32[8]{0} add(f32[8]{0} %a)``."""

import re
from collections.abc import Iterable

from asap.profiles.hlo.program import Instruction, Program

_EXPRESSION = re.compile(r"%?(?P<name>[\w.-]+) = (?P<shape>.+?) (?P<opcode>[a-z][\w-]*)\((?P<rest>.*)", re.S)
_LAYOUT = re.compile(r"\{[^{}]*\}")
_OPERAND = re.compile(r"%([\w.-]+)")
_CALLED = re.compile(r"\b(?:calls|body|to_apply)=%?([\w.-]+)")


def program_of(expressions: Iterable[str], name: str) -> Program | None:
    """A program of the instructions that ran, all in one computation; ``None`` if there is no expression."""
    found = tuple(one for one in map(_instruction, expressions) if one is not None)
    return Program(name, {"": found}) if found else None


def _instruction(expression: str) -> Instruction | None:
    match = _EXPRESSION.match(expression)
    if match is None:
        return None
    arguments, _, attributes = match["rest"].partition("), ")
    return Instruction(
        match["name"],
        match["opcode"],
        _LAYOUT.sub("", match["shape"]),
        tuple(dict.fromkeys(_OPERAND.findall(arguments))),
        tuple(_CALLED.findall(attributes)),
    )
