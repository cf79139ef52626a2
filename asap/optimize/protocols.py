"""The two sides of the loop: what evaluates a configuration, and what proposes the next."""

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Protocol, runtime_checkable

from asap.optimize.outcome import Configuration, Outcome, Suggestion, Try


class Evaluator(Protocol):
    """Turns a configuration into an outcome: the model, the compiler, a run."""

    @property
    def name(self) -> str:
        """``model``, ``compiler`` or ``run``."""
        ...

    def evaluate(self, configuration: Configuration, place: Path, seconds: float = math.inf) -> Outcome:
        """What comes of a configuration.

        Args:
            configuration: its text.
            place: a folder of this try alone. Called with it again, after a kill, an evaluator continues what it began
                there: what was paid for is never paid for twice.
            seconds: what is left of the budget; an evaluation that needs more is stopped, and is lost. Infinite: no
                limit.
        """
        ...


@runtime_checkable
class SeveralAtOnce(Protocol):
    """An evaluator that takes several configurations at once, and needs no folder to go on after a kill."""

    @property
    def name(self) -> str:
        """As an :class:`Evaluator` has it."""
        ...

    @property
    def at_once(self) -> int:
        """How many."""
        ...

    def evaluate_all(self, configurations: Sequence[Configuration], seconds: float = math.inf) -> list[Outcome]:
        """What comes of each, in their order, with so many seconds left for all of them."""
        ...


class Proposer(Protocol):
    """Learns from tries and proposes the next."""

    def propose(self, tries: Sequence[Try]) -> Suggestion | None:
        """The next configuration, given all tries with their outcomes and feedback; ``None``: nothing is left to try.

        Tries that are under way have no outcome. A configuration may be proposed again, to measure it better.
        """
        ...
