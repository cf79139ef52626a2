"""Feedback on a mapped program that gave no modelled time: what stopped it, and what to change."""

from math import prod

from asap.compiler.algorithms.choices import Choices
from asap.compiler.mapped.codes import Code
from asap.compiler.mapped.difference import Difference
from asap.compiler.mapped.edits import write_line
from asap.compiler.programs.outcome import CompileOutcome
from asap.core.feedback import Feedback, Repair
from asap.core.text import plain
from asap.core.units import format_bytes
from asap.mapping.algorithm import ALGORITHMS, most_even_grid

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
    reason = f"off by {found.error:.2g} of the largest element: {found.pattern}"
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
