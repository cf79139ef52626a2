"""Feedback on a mapped program without a modelled time: what stopped it, and what to change."""

from dataclasses import dataclass
from enum import StrEnum
from math import prod

import numpy as np

from asap.compiler.algorithms.choices import Choices
from asap.compiler.programs.request import CompileOutcome
from asap.core.feedback import END_OF_LINE, Feedback, Repair
from asap.core.text import plain
from asap.core.units import format_bytes, format_percent, significant
from asap.mapping.algorithm import ALGORITHMS, most_even_grid


class Code(StrEnum):
    """Kinds of feedback on a mapped program. Those that other evaluations know as well are spelt alike."""

    LOWERING_ERROR = "LOWERING_ERROR"
    OUT_OF_MEMORY = "OUT_OF_MEMORY"
    COMPILER_CRASH = "COMPILER_CRASH"
    TIMEOUT = "TIMEOUT"
    WRONG_RESULT = "WRONG_RESULT"
    SYNCHRONOUS_COLLECTIVE = "SYNCHRONOUS_COLLECTIVE"
    RING_LOST = "RING_LOST"
    EXPOSED_COLLECTIVE = "EXPOSED_COLLECTIVE"
    LAYOUT_COPY = "LAYOUT_COPY"
    RESHARDING = "RESHARDING"
    MEMORY_TO_SPARE = "MEMORY_TO_SPARE"
    COMPUTE_BOUND = "COMPUTE_BOUND"


def write_line(text: str, keyword: str, value: str) -> Repair:
    """The edit after which the program says a decision; the line that says it now is replaced.

    Args:
        text: the program.
        keyword: what the line begins with: ``grid``, ``layout segments``.
        value: what follows it.
    """
    line = f"{keyword} {value}"
    for number, source in enumerate(text.split("\n"), 1):
        if source.split("#")[0].strip().startswith(f"{keyword} "):
            return Repair(line=number, column=1, end_column=END_OF_LINE, text=line)
    return Repair(line=1, column=1, end_column=1, text=f"{line}\n")


TOLERANCE = 1e-4
"""Of the largest element of the right result; the programs agree to 1e-6 in float32."""


@dataclass(frozen=True)
class Difference:
    """The largest error over the largest element, and its pattern; empty if the result is right."""

    error: float
    pattern: str


def difference(found: np.ndarray, right: np.ndarray) -> Difference:
    """Compare a result with that of the plain program."""
    if found.shape != right.shape:
        return Difference(float("inf"), f"the shape is {found.shape} instead of {right.shape}")
    scale = float(np.abs(right).max()) or 1.0
    wrong = ~(np.abs(found - right) <= TOLERANCE * scale)
    if not wrong.any():
        return Difference(float(np.abs(found - right).max()) / scale, "")
    if not np.isfinite(found).all():
        return Difference(float("inf"), f"{int((~np.isfinite(found)).sum()):,} elements are not finite")
    return Difference(float(np.abs(found - right).max()) / scale, _pattern(found, right, wrong, TOLERANCE * scale))


def _pattern(found: np.ndarray, right: np.ndarray, wrong: np.ndarray, near: float) -> str:
    for axis, name in enumerate(("rows", "columns")[: found.ndim]):
        one, other = np.moveaxis(found, axis, 0), np.moveaxis(right, axis, 0)
        order = [np.flatnonzero(np.abs(other - line).reshape(len(other), -1).max(1) <= near) for line in one]
        if all(len(places) for places in order):
            moved = sum(index not in places for index, places in enumerate(order))
            return f"{moved} of {len(one)} {name} are right and in the wrong place"
    factor = float((found * right).sum() / (right * right).sum())
    if np.abs(found - factor * right).max() <= 10 * near:
        return f"every element is {significant(factor)} times too large"
    if not _inside(wrong).any():
        return "only the rim is wrong"
    lines = [int(wrong.any(axis=tuple(a for a in range(wrong.ndim) if a != axis)).sum()) for axis in range(wrong.ndim)]
    return f"{format_percent(wrong.mean(), 0)} of the elements are wrong, in {lines[0]} of {len(wrong)} rows"


def _inside(wrong: np.ndarray) -> np.ndarray:
    """Without an eighth at each end of the first two dimensions."""
    cut = tuple(slice(length // 8, length - length // 8) for length in wrong.shape[:2])
    return wrong[cut]


_CODES = {
    "step_failed": Code.LOWERING_ERROR,
    "refused": Code.LOWERING_ERROR,
    "does_not_fit": Code.OUT_OF_MEMORY,
    "crashed": Code.COMPILER_CRASH,
    "timed_out": Code.TIMEOUT,
    "out_of_host_memory": Code.COMPILER_CRASH,
}
_SHOWN = 300


_Advice = tuple[str, Repair]
"""A suggestion, and the edit that follows it."""


def compile_failure(text: str, choices: Choices, outcome: CompileOutcome) -> Feedback:
    """Why there is no compiled program."""
    code = _CODES[outcome.status]
    said = plain(outcome.message, _SHOWN)
    if code is Code.OUT_OF_MEMORY:
        needed, available = outcome.needed_bytes, outcome.available_bytes
        limits = said
        if needed is not None and available is not None:
            limits = f"needs {format_bytes(needed)} of HBM, and {format_bytes(available)} are there"
        return _feedback(code, limits, _less_memory(text, choices))
    if code is Code.LOWERING_ERROR:
        return _feedback(code, f"the program cannot be built: {said}", _smaller_shares(text, choices))
    stopped = "the compiler did not finish" if code is Code.TIMEOUT else "the compiler died"
    return _feedback(code, f"{stopped}: {said}", _plainer(text, choices))


def wrong_result(text: str, choices: Choices, found: Difference) -> Feedback:
    """A result that differs from that of the plain program on virtual devices."""
    if found.pattern.startswith("raises "):
        reason = f"the program cannot be built: {found.pattern.removeprefix('raises ')}"
        return _feedback(Code.LOWERING_ERROR, reason, _smaller_shares(text, choices))
    reason = f"off by {format_percent(found.error)} of the largest element: {found.pattern}"
    return _feedback(Code.WRONG_RESULT, reason, _plainer(text, choices))


def _feedback(code: Code, explanation: str, advice: _Advice) -> Feedback:
    suggestion, repair = advice
    return Feedback(code=code, explanation=explanation, suggestion=suggestion, repair=repair)


def _less_memory(text: str, choices: Choices) -> _Advice:
    if "panels" in ALGORITHMS[choices.algorithm].settings:
        more = str(2 * choices.panels)
        return f"gather in {more} panels, so that less is there at once", write_line(text, "panels", more)
    return _even(text, choices, "spread the blocks evenly, so that the gathered ones are smaller")


def _smaller_shares(text: str, choices: Choices) -> _Advice:
    for keyword, value in (("panels", choices.panels), ("halo", choices.halo)):
        if value > 1:
            half = str(value // 2)
            return f"write {keyword} {half}: the shares have to divide", write_line(text, keyword, half)
    return _even(text, choices, "every dimension has to divide over its axes")


def _plainer(text: str, choices: Choices) -> _Advice:
    """Take the choice back that is furthest from the textbook's."""
    for keyword, value in (("panels", choices.panels), ("halo", choices.halo)):
        if value > 1:
            return f"write {keyword} 1", write_line(text, keyword, "1")
    ways = ALGORITHMS[choices.algorithm].exchanges
    if ways and choices.exchange != ways[0]:
        return f"exchange by {ways[0]}", write_line(text, "exchange", ways[0])
    return _even(text, choices, "spread the blocks evenly")


def _even(text: str, choices: Choices, reason: str) -> _Advice:
    grid = most_even_grid(ALGORITHMS[choices.algorithm], prod(choices.grid)) or choices.grid
    line = f"({', '.join(map(str, grid))})"
    return f"{reason}: write grid {line}", write_line(text, "grid", line)
