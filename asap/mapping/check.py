"""Everything that can be checked in a program without compiling it."""

from dataclasses import dataclass
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

from asap.hardware import Slice
from asap.mapping.checks.algorithms import check_algorithm
from asap.mapping.checks.machine import check_mesh, check_order
from asap.mapping.checks.names import check_names, check_once
from asap.mapping.checks.tensors import check_agreement, check_shardings
from asap.mapping.coverage import Target
from asap.mapping.language.feedback import Feedback
from asap.mapping.language.parse import MOST_FEEDBACK, parse
from asap.mapping.language.program import Program


@dataclass(frozen=True)
class Checked:
    """A program and what is wrong with it; ``unchecked`` says what could not be checked for want of facts."""

    program: Program
    feedback: tuple[Feedback, ...]
    unchecked: tuple[str, ...]


def check(text: str, target: Target | None = None, hardware: Slice | None = None) -> Checked:
    """Parse and check a program.

    Args:
        text: the program.
        target: the model that it is for; names and dimensions of tensors are checked against it.
        hardware: the machine that it is for; mesh, grid and order are checked against it.
    """
    program, wrong = parse(text)
    found = list(wrong)
    if program.lines:
        found += check_program(program, target, hardware)
    unchecked = []
    if target is None:
        unchecked.append("tensors, dimensions and layers, without a model")
    if hardware is None:
        unchecked.append("mesh, grid and order of devices, without a machine")
    ordered = sorted(found, key=lambda each: (each.line, each.column))
    return Checked(program, tuple(ordered[:MOST_FEEDBACK]), tuple(unchecked))


def check_program(program: Program, target: Target | None, hardware: Slice | None) -> list[Feedback]:
    """What is wrong with a program that was parsed."""
    named = list(check_names(program, target))
    found = [
        *named,
        *check_once(program),
        *check_mesh(program, target, hardware),
        *check_order(program, hardware),
        *check_algorithm(program, target, hardware),
        *check_agreement(program, target),
    ]
    if target is not None and not named:
        found += check_shardings(program, target)
    return found


_FROZEN = ConfigDict(frozen=True, populate_by_name=True)


class CheckReport(BaseModel):
    """Whether a program passes, and everything that is wrong with it."""

    model_config = _FROZEN

    schema_: Literal["asap.mapping/1"] = Field(default="asap.mapping/1", alias="schema")
    valid: bool
    decisions: int
    feedback: tuple[Feedback, ...]
    unchecked: tuple[str, ...] = Field(description="what could not be checked, and for want of what")


class FormatReport(BaseModel):
    """A program in its one form."""

    model_config = _FROZEN

    schema_: Literal["asap.mapping/1"] = Field(default="asap.mapping/1", alias="schema")
    text: str
