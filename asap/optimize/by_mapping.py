"""A mapping program of a distributed algorithm, optimized: proposed, run on virtual devices, compiled, explained."""

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

from asap.compiler.algorithms.choices import Choices
from asap.compiler.algorithms.matmul import Problem
from asap.compiler.mapped.judge import judge, read_choices, request_of
from asap.compiler.traced.predict_algorithm import AlgorithmPredictor
from asap.core.errors import BadInputError
from asap.core.feedback import Feedback
from asap.core.text import plain
from asap.core.units import Provenance, format_seconds
from asap.hardware import Slice
from asap.mapping.algorithm import ALGORITHMS
from asap.mapping.check import check
from asap.mapping.language.format import format_order
from asap.mapping.language.parse import parse
from asap.mapping.space import machine_space
from asap.optimize.loop import Making, engine_alone, optimize
from asap.optimize.outcome import Configuration, Outcome, Try
from asap.optimize.proposers.mapping_prior import KERNEL, PredictedMappings, mapping_prior
from asap.optimize.proposers.model_guided import ModelGuided
from asap.optimize.results import best_of, language_model_record
from asap.optimize.session import Session
from asap.optimize.stopping import Stopped, StoppingRule


@dataclass(frozen=True)
class MappingEvaluator:
    """Judges programs for one slice; ``problem`` are the sizes to compile for, those of the benchmark by default."""

    hardware: Slice
    problem: Problem | None = None

    def evaluate(self, configuration: Configuration, place: Path, seconds: float = math.inf) -> Outcome:
        """What comes of a program. The compiler's cache keeps what it answered, so nothing is kept at ``place``.

        A program takes seconds, and their number is the budget, so ``seconds`` is not looked at.
        """
        del place, seconds
        begin = time.monotonic()
        judged = judge(configuration, self.hardware, self.problem)
        return Outcome(
            status=judged.status, step_time_s=judged.seconds, hbm_bytes=judged.hbm_bytes,
            provenance=Provenance.COMPILED, feedback=judged.feedback, seconds=time.monotonic() - begin,
        )  # fmt: skip


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
    learnt: tuple[str, ...] = ()


def optimize_program(
    text: str,
    hardware: Slice,
    budget: int,
    session: Callable[[], Session],
    say: Callable[[str], None] = lambda line: None,
    proposer: Making = engine_alone,
) -> MappingOptimization:
    """Try programs like one that is given, from that one on; then what is predicted to be fast.

    Args:
        text: a program that passes the checks and chooses an algorithm.
        hardware: one slice of TPUs.
        budget: most programs that are tried.
        session: begins the session that writes the tries down; called once the program is known to be good.
        say: called with lines for people: how many programs were predicted, and each try that ended.
        proposer: makes the proposer; the built-in one by default.

    Raises:
        BadInputError: the program is wrong or chooses no algorithm, or the hardware has no TPU compiler.
        InsufficientEvidenceError: no program can be predicted.
    """
    if found := check(text, None, hardware).feedback:
        raise BadInputError(str(found[0]), where="the program")
    choices = read_choices(text, hardware)
    request_of(text, hardware, {})
    engine = _engine(choices, text, hardware, say)
    begun, shown = session(), set[int]()

    def show(session: Session, *_: object) -> None:
        for each in session.tries:
            if each.outcome is not None and each.number not in shown:
                shown.add(each.number)
                say(line_of_program(each, session.tries[0]))

    stopped = optimize(
        begun, proposer(begun, engine), MappingEvaluator(hardware), StoppingRule(evaluations=budget), show
    )
    best, first = best_of(begun.tries), begun.tries[0].outcome if begun.tries else None
    start = first.step_time_s if first else None
    return MappingOptimization(
        session=begun.name, tries=tuple(begun.tries), stopped=stopped,
        best=best.configuration if best else None, best_seconds=best.step_time_s if best else None,
        gain=1 - best.step_time_s / start if best and start else None,
        learnt=tuple(language_model_record(begun.tries)),
    )  # fmt: skip


def in_brief(tries: Sequence[Try]) -> list[Try]:
    """The tries for a table: what each program changes in the first, and the first thing that was said of it."""
    found = []
    for each in tries:
        outcome = each.outcome
        brief = outcome.model_copy(update={"feedback": outcome.feedback[:1]}) if outcome else None
        found.append(each.model_copy(update={"configuration": _changes(each, tries[0]), "outcome": brief}))
    return found


def line_of_program(each: Try, first: Try) -> str:
    """A program that was tried, in one line: its modelled and predicted time, and what it changes in the first."""
    outcome, predicted = each.outcome, each.predicted.step_time_s
    modelled = f"{format_seconds(outcome.step_time_s)} modelled" if outcome and outcome.step_time_s else ""
    time = modelled or (outcome.status if outcome else "running")
    expected = f", {format_seconds(predicted)} predicted" if predicted else ""
    return plain(f"{each.number}. {time}{expected}: {_changes(each, first)}")


def _changes(each: Try, first: Try) -> str:
    before = first.configuration.splitlines() if each.number != first.number else ()
    return "; ".join(line for line in each.configuration.splitlines() if line.strip() and line not in before)


def _engine(choices: Choices, text: str, hardware: Slice, say: Callable[[str], None]) -> PredictedMappings:
    """Proposes what is predicted to be fast."""
    space, said = machine_space(choices.algorithm, hardware), _said(text, choices)

    def wrong(program: Configuration) -> Sequence[Feedback]:
        return check(program, None, hardware).feedback

    began, predict = time.monotonic(), AlgorithmPredictor(hardware).seconds
    legal = (chosen for chosen in space.choices() if not wrong(space.text(chosen)))
    start = {keyword: said[keyword] for keyword in space.options}
    prior = mapping_prior(space, chain([start], legal), predict)
    say(f"{len(prior.configurations)} programs predicted in {format_seconds(time.monotonic() - began)}")
    return PredictedMappings(space, ModelGuided(prior, KERNEL), space.text(said), wrong, predict)


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
