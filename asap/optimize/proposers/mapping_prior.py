"""Proposes mapping programs that traces predict to be fast; what was evaluated corrects the prediction."""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from asap.core.errors import InsufficientEvidenceError
from asap.evidence.step_belief import Array, Prior, apart
from asap.mapping.space import AlgorithmSpace
from asap.optimize.outcome import Configuration, Suggestion, Try
from asap.optimize.proposers.mapping_rules import MappingRules, meaning
from asap.optimize.proposers.model_guided import ModelGuided
from asap.prediction.uncertainty.residual_kernel import ResidualKernel

KERNEL = ResidualKernel(deviation=0.15, reach=0.5, limit=0.17)
"""Of ``ln(modelled / predicted)`` on the tables of the products and the stencil, each with the same weight: the
likeliest deviation and reach, and what nine in ten residuals stay below (``scripts/mapping/predictions.py``)."""

OTHER_ORDER = 0.02
"""Doublings that another order of devices counts as, likeliest on the same tables: the link model that also costs what
is compiled predicts most of what it changes."""


def mapping_prior(
    space: AlgorithmSpace, programs: Iterable[Mapping[str, str]], predict: Callable[[Configuration], float]
) -> Prior | None:
    """The prior over programs that pass the checks; ``None`` if none can be predicted.

    Args:
        space: the decisions.
        programs: the option of each decision that a program chooses.
        predict: seconds of a program; what it cannot predict is left out.
    """
    found: dict[Configuration, tuple[Mapping[str, str], float]] = {}
    for chosen in programs:
        text = space.text(chosen)
        try:
            found[text] = chosen, math.log(predict(text))
        except InsufficientEvidenceError:
            continue
    if not found:
        return None
    chosen, log_time = zip(*found.values(), strict=True)
    return Prior(
        configurations=tuple(found),
        log_time=np.array(log_time),
        log_fill=None,
        effort=np.zeros(len(found)),
        apart=programs_apart(chosen),
    )


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


@dataclass(frozen=True)
class PredictedMappings:
    """Repairs what was wrong; else tries what is expected to save most.

    Args:
        rules: begin and repair; they propose alone once all that was predicted has been tried.
        guided: knows what is predicted, of programs that pass the checks.
    """

    rules: MappingRules
    guided: ModelGuided

    def propose(self, tries: Sequence[Try]) -> Suggestion | None:
        """The next program; ``None`` once nothing new is found."""
        seen = [each.model_copy(update={"configuration": self._as_predicted(each.configuration)}) for each in tries]
        needed = self.rules.needed(tries)
        if needed is None:
            return self.guided.propose(seen) or self.rules.propose(tries)
        expected = self.guided.expected(self._as_predicted(needed.configuration), seen)
        return needed.model_copy(update={"predicted": expected.predicted}) if expected else needed

    def _as_predicted(self, text: Configuration) -> Configuration:
        """The predicted program that decides the same; the text itself if there is none."""
        return self._predicted.get(meaning(text), text)

    @cached_property
    def _predicted(self) -> dict[frozenset[str], Configuration]:
        return {meaning(text): text for text in self.guided.prior.configurations}
