"""Proposes mapping programs that traces predict to be fast; what was evaluated corrects the prediction.

What is wrong is repaired as its feedback says. No algorithm is known by name.
"""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any

import numpy as np

from asap.core.errors import InsufficientEvidenceError
from asap.core.feedback import Feedback, repaired
from asap.evidence.step_belief import Z_90, Array, Prior, apart
from asap.mapping.language.format import format_decision, format_program
from asap.mapping.language.grammar import GRAMMAR
from asap.mapping.language.parse import parse
from asap.mapping.space import AlgorithmSpace
from asap.optimize.loop import NotUsableError
from asap.optimize.outcome import Configuration, Expectation, Suggestion, Try
from asap.optimize.proposers.model_guided import ModelGuided
from asap.prediction.uncertainty.residual_kernel import ResidualKernel

KERNEL = ResidualKernel(deviation=0.15, reach=0.5, limit=0.17)
"""Of ``ln(modelled / predicted)`` on the tables of the products and the stencil, each with the same weight: the
likeliest deviation and reach, and what nine in ten residuals stay below (``scripts/mapping/loop.py``)."""

OTHER_ORDER = 0.02
"""Doublings that another order of devices counts as, likeliest on the same tables: the link model that also costs what
is compiled predicts most of what it changes."""


def mapping_prior(
    space: AlgorithmSpace, programs: Iterable[Mapping[str, str]], predict: Callable[[Configuration], float]
) -> Prior:
    """The prior over programs that pass the checks.

    Args:
        space: the decisions.
        programs: the option of each decision that a program chooses.
        predict: seconds of a program; what it cannot predict is left out.

    Raises:
        InsufficientEvidenceError: none can be predicted.
    """
    found: dict[Configuration, tuple[Mapping[str, str], float]] = {}
    for chosen in programs:
        text = space.text(chosen)
        try:
            found[text] = chosen, math.log(predict(text))
        except InsufficientEvidenceError:
            continue
    if not found:
        raise InsufficientEvidenceError("no program can be predicted", where=space.algorithm)
    chosen, log_time = zip(*found.values(), strict=True)
    return Prior(
        configurations=tuple(found), log_time=np.array(log_time), log_fill=None, effort=np.zeros(len(found)),
        apart=programs_apart(chosen),
    )  # fmt: skip


def programs_apart(programs: Sequence[Mapping[str, str]], other_order: float = OTHER_ORDER) -> Callable[[int], Array]:
    """How far each program is from all of them, as a :class:`Prior` wants it.

    In doublings of a side of the grid or of a number; another word counts as one, another order as ``other_order``.
    """

    def distance(keyword: str, option: str, other: str) -> float:
        if keyword == "order":
            return other_order * (option != other)
        return abs(math.log2(int(option) / int(other))) if option.isdecimal() else float(option != other)

    def distances(chosen: Mapping[str, str], other: Mapping[str, str]) -> tuple[float, ...]:
        keywords = [keyword for keyword in chosen if keyword != "grid"]
        sides = zip(_sides(chosen), _sides(other), strict=True)
        return (
            *(distance("grid", *each) for each in sides),
            *(distance(keyword, chosen[keyword], other[keyword]) for keyword in keywords),
        )

    return apart(programs, _options, distances)


def _options(chosen: Mapping[str, str]) -> tuple[str, ...]:
    return (*_sides(chosen), *(option for keyword, option in chosen.items() if keyword != "grid"))


def _sides(chosen: Mapping[str, str]) -> list[str]:
    return chosen["grid"].strip("()").split(", ")


@lru_cache(maxsize=10_000)
def meaning(text: Configuration) -> frozenset[str]:
    """The decisions of a program, whatever their order and spacing; the text itself where it has none."""
    return frozenset(format_decision(decision) for decision in parse(text)[0].decisions) or frozenset((text,))


_MOST_REPAIRS = 3
"""Times that what was repaired is checked again. Judgement: which programs are given up."""


@dataclass(frozen=True)
class PredictedMappings:
    """Begins with a program, repairs what was wrong, else tries what is expected to save most
    (:class:`asap.optimize.loop.Engine`).

    Args:
        space: the decisions and their options.
        guided: knows what is predicted, of programs that pass the checks.
        start: the program to begin with.
        wrong: what the checks say of a program.
        predict: seconds of a program that passes them; raises :class:`InsufficientEvidenceError`.
    """

    space: AlgorithmSpace
    guided: ModelGuided
    start: Configuration
    wrong: Callable[[Configuration], Sequence[Feedback]] = lambda text: ()
    predict: Callable[[Configuration], float] | None = None

    @property
    def language(self) -> Mapping[str, Any]:
        """The grammar, and the options that the machine has for each decision."""
        return {"grammar": GRAMMAR, "algorithm": self.space.algorithm, "options": self.space.options}

    def propose(self, tries: Sequence[Try]) -> Suggestion | None:
        """The next program; ``None`` once all that was predicted has been tried."""
        if needed := self._needed(tries):
            return needed.model_copy(update={"predicted": self.expected(needed.configuration, tries).predicted})
        return self.guided.propose(self._seen(tries))

    def best(self, tries: Sequence[Try], count: int) -> list[Suggestion]:
        """The most promising that were not tried, best first."""
        return self.guided.best(self._seen(tries), count)

    def read(self, text: str) -> Configuration:
        """A program of the same algorithm that passes the checks, as it is predicted or was first read."""
        if found := self.wrong(text):
            raise NotUsableError("the program does not pass the checks", found)
        algorithm = f"algorithm {self.space.algorithm}"
        if algorithm not in meaning(text):
            raise NotUsableError(f"the program has to be of the same task: {algorithm}")
        return self._known.setdefault(meaning(text), format_program(parse(text)[0]))

    def expected(self, configuration: Configuration, tries: Sequence[Try]) -> Suggestion:
        """What is expected of a program; what its trace predicts where none that was predicted decides the same."""
        if found := self.guided.expected(self._as_predicted(configuration), self._seen(tries)):
            return found
        predicted = Expectation()
        if self.predict is not None:
            with suppress(InsufficientEvidenceError):
                seconds, half = self.predict(configuration), Z_90 * KERNEL.deviation
                low, high = seconds * math.exp(-half), seconds * math.exp(half)
                predicted = Expectation(step_time_s=seconds, low_s=low, high_s=high)
        return Suggestion(configuration=configuration, why="", predicted=predicted)

    def _needed(self, tries: Sequence[Try]) -> Suggestion | None:
        """The program to begin with, or the repair of the last one if that was wrong; ``None``: there is neither."""
        if not tries:
            return Suggestion(configuration=self.start, why="the program to begin with")
        last = tries[-1].outcome
        if last is None or last.status == "done" or not last.feedback:
            return None
        text, found = tries[-1].configuration, last.feedback
        for _ in range(1 + _MOST_REPAIRS):
            text = repaired(text, found)
            if not (found := self.wrong(text)):
                break
        if found or any(meaning(text) == meaning(each.configuration) for each in tries):
            return None
        return Suggestion(configuration=text, why=f"repairs {last.feedback[0].code}")

    def _seen(self, tries: Sequence[Try]) -> list[Try]:
        return [each.model_copy(update={"configuration": self._as_predicted(each.configuration)}) for each in tries]

    def _as_predicted(self, text: Configuration) -> Configuration:
        """The predicted program that decides the same; the text itself if there is none."""
        return self._known.get(meaning(text), text)

    @cached_property
    def _known(self) -> dict[frozenset[str], Configuration]:
        return {meaning(text): text for text in self.guided.prior.configurations}
