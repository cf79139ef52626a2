"""Lines about tensors: contradictions, dimensions that do not divide, axes that one tensor has twice."""

import math
from collections.abc import Iterator
from typing import Literal

from asap.mapping.coverage import Coverage, Line, Target, contradictions, value_of
from asap.mapping.language.feedback import Code, Feedback, Position, delete_line, feedback, replace
from asap.mapping.language.program import Program, Sharding
from asap.mapping.sharding import Split, TensorSharding, shardings

KEYWORDS = ("shard", "constrain", "place", "layout", "dtype", "remat")


def check_agreement(program: Program, target: Target | None) -> Iterator[Feedback]:
    """Two lines that decide differently for the same tensors; without a target, for the same names."""
    for keyword in KEYWORDS:
        if target is None:
            lines = [line for line in program.decisions if isinstance(line, Line) and line.keyword == keyword]
            subjects = {_subject(line): 1 << number for number, line in enumerate(lines)}
            covered = [(line, subjects[_subject(line)]) for line in lines]
        else:
            covered = Coverage(target, keyword, program).lines
        for later, earlier in contradictions(covered):
            yield _contradiction(later, earlier)


def check_shardings(program: Program, target: Target) -> Iterator[Feedback]:
    """Dimensions that do not divide over their axes, and tensors that have an axis twice; each line once."""
    reported: set[tuple[Code, Position]] = set()
    for keyword in ("shard", "constrain"):
        for found in _wrong(program, target, keyword):
            at = Position(found.line, found.column, 0)
            if (found.code, at) not in reported:
                reported.add((found.code, at))
                yield found


def _wrong(program: Program, target: Target, keyword: Literal["shard", "constrain"]) -> Iterator[Feedback]:
    for sharding in shardings(target, program, keyword):
        seen: dict[str, Sharding] = {}
        for split in sharding.splits:
            if split.line is None:
                continue
            yield from _check_length(program, sharding, split, split.line)
            for axis in split.line.axes:
                earlier = seen.setdefault(axis.text, split.line)
                if earlier is not split.line or [each.text for each in split.line.axes].count(axis.text) > 1:
                    yield _twice(sharding, axis.text, *sorted((earlier, split.line), key=lambda line: line.at))


def _check_length(program: Program, sharding: TensorSharding, split: Split, line: Sharding) -> Iterator[Feedback]:
    mesh, length = program.mesh, split.dimension.length
    if mesh is None or length is None:
        return
    kept: tuple[str, ...] = ()
    for axis in split.axes:
        if length % math.prod(mesh.total(each) for each in (*kept, axis)) == 0:
            kept = (*kept, axis)
    if kept == split.axes:
        return
    degrees = " x ".join(f"{axis}={mesh.total(axis)}" for axis in split.axes)
    name = sharding.place.tensor.name
    found = f"{split.dimension.name} of {name} is {length} and does not divide over {degrees}"
    at = line.axes[0].at.to(line.axes[-1].at)
    right = ", ".join(kept) or "none"
    advice = f"write over {right}, or give {name} a line of its own"
    yield feedback(Code.NOT_DIVISIBLE, at, found, advice, repair=replace(at, right))


def _twice(sharding: TensorSharding, axis: str, earlier: Sharding, later: Sharding) -> Feedback:
    found = f"{axis} splits two dimensions of {sharding.place.tensor.name}"
    if earlier is later:
        found = f"{axis} is named twice"
    wrong = [each for each in later.axes if each.text == axis][-1]
    at = later.axes[0].at.to(later.axes[-1].at)
    right = ", ".join(dict.fromkeys(each.text for each in later.axes if earlier is later or each.text != axis))
    other = next(each for each in earlier.axes if each.text == axis).at
    advice = f"write over {right or 'none'}"
    return feedback(Code.AXIS_TWICE, wrong.at, found, advice, other=other, repair=replace(at, right or "none"))


def _contradiction(later: Line, earlier: Line) -> Feedback:
    one, other = (", ".join(value_of(line)) or "none" for line in (earlier, later))
    same = [name.text for name in later.names] == [name.text for name in earlier.names]
    shared = "the same" if same else "some of the same"
    what = "layers" if later.keyword == "remat" else "tensors"
    found = f"line {earlier.at.line} says {one} for {shared} {what}, and this line {other}"
    advice = "remove one of them, or let one cover a part of what the other does"
    return feedback(Code.CONTRADICTION, later.at, found, advice, other=earlier.at, repair=delete_line(later.at.line))


def _subject(line: Line) -> tuple[object, ...]:
    names = tuple(sorted(name.text for name in line.names))
    return names, line.layers, line.dimension.text if isinstance(line, Sharding) else None
