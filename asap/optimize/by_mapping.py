"""A mapping program of a distributed algorithm, optimized: proposed, run on virtual devices, compiled, explained."""

from collections.abc import Callable
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

from asap.compiler.algorithms.choices import Choices
from asap.compiler.mapped.judge import read_choices, request_of
from asap.core.errors import BadInputError
from asap.core.text import plain
from asap.core.units import format_seconds
from asap.hardware import Slice
from asap.mapping.algorithm import ALGORITHMS
from asap.mapping.algorithm_space import machine_space
from asap.mapping.check import check, mended
from asap.mapping.language.format import format_order
from asap.mapping.language.parse import parse
from asap.optimize.evaluators.mapping import MappingEvaluator
from asap.optimize.loop import optimize
from asap.optimize.outcome import Try
from asap.optimize.proposers.mapping_rules import MappingRules
from asap.optimize.results import best_of
from asap.optimize.session import Session
from asap.optimize.stopping import Stopped, StoppingRule


class MappingOptimization(BaseModel):
    """Every program that was tried, and the best."""

    model_config = ConfigDict(frozen=True, populate_by_name=True)

    schema_: Literal["asap.mapping/1"] = Field(default="asap.mapping/1", alias="schema")
    session: str
    tries: tuple[Try, ...] = Field(description="step_time_s is modelled time: the compiler's schedule on a link model")
    best: str | None = Field(description="the program with the least modelled time; null: none was right and compiled")
    best_seconds: float | None
    gain: float | None = Field(description="share of the first program's modelled time that the best one saves")
    stopped: Stopped


def optimize_program(
    text: str,
    hardware: Slice,
    budget: int,
    session: Callable[[], Session],
    seed: int = 0,
    watch: Callable[[Try], None] = lambda done: None,
) -> MappingOptimization:
    """Try programs like one that is given, from that one on.

    Args:
        text: a program that passes the checks and chooses an algorithm.
        hardware: one slice of TPUs.
        budget: most programs that are tried.
        session: begins the session that writes the tries down; called once the program is known to be good.
        seed: of the order in which equal options are tried.
        watch: called with each try that ended.

    Raises:
        BadInputError: the program is wrong or chooses no algorithm, or the hardware has no TPU compiler.
    """  # fmt: skip
    if found := check(text, None, hardware).feedback:
        raise BadInputError(str(found[0]), where="the program")
    choices = read_choices(text, hardware)
    request_of(text, hardware, {})
    space = machine_space(choices.algorithm, hardware)
    proposer = MappingRules(
        space, start=space.text(_said(text, choices)), seed=seed,
        allowed=lambda program: not check(program, None, hardware).feedback,
        mended=lambda program: mended(program, hardware),
    )  # fmt: skip
    begun, shown = session(), set[int]()

    def show(session: Session, *_: object) -> None:
        for each in session.tries:
            if each.outcome is not None and each.number not in shown:
                shown.add(each.number)
                watch(each)

    stopped = optimize(begun, proposer, MappingEvaluator(hardware), StoppingRule(evaluations=budget), show)
    best, first = best_of(begun.tries), begun.tries[0].outcome if begun.tries else None
    start = first.step_time_s if first else None
    return MappingOptimization(
        session=begun.name, tries=tuple(begun.tries), stopped=stopped,
        best=best.configuration if best else None, best_seconds=best.step_time_s if best else None,
        gain=1 - best.step_time_s / start if best and start else None,
    )  # fmt: skip


def line_of_program(each: Try) -> str:
    """A program that was tried, in one line: its modelled time, why it was tried, and the codes of its feedback."""
    outcome = each.outcome
    if outcome is None:
        return f"{each.number}. running"
    time = f"{format_seconds(outcome.step_time_s)} modelled" if outcome.step_time_s else outcome.status
    lines = "; ".join(line for line in each.configuration.splitlines() if line.strip())
    codes = ", ".join(dict.fromkeys(found.code for found in outcome.feedback))
    return plain(f"{each.number}. {time}: {lines} ({each.why}) -> {codes}")


def _said(text: str, choices: Choices) -> dict[str, str]:
    """What a program decides, the textbook's choices as well, as the lines that say it."""
    order = parse(text)[0].order
    layouts = {
        f"layout {array}": "col" if array in choices.by_column else "row"
        for array in ALGORITHMS[choices.algorithm].arrays
    }
    return {
        "grid": f"({', '.join(map(str, choices.grid))})", "order": format_order(order) if order else "row",
        "exchange": choices.exchange, "stationary": choices.stationary, "panels": str(choices.panels),
        "halo": str(choices.halo), "overlap": "on" if choices.overlap else "off", **layouts,
    }  # fmt: skip
