"""Untested ideas in the loop: changes beside the plan, each tried on the best configuration, and how they fared."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from pydantic import BaseModel

from asap.core.text import plain
from asap.evidence.step_belief import Result
from asap.optimize.loop import Proposer
from asap.optimize.outcome import Configuration, Suggestion, Try
from asap.optimize.results import best_of, ended, results
from asap.optimize.stopping import WORTH_KNOWING
from asap.plans import Plan

_WITH = " with "
Verdict = Literal["faster", "slower", "undecided", "failed"]


def split_idea(configuration: Configuration) -> tuple[Configuration, str]:
    """A configuration without its idea, and the idea; empty if it has none."""
    base, _, idea = configuration.partition(_WITH)
    return base, idea


def plan_in(configuration: Configuration) -> Plan:
    """The plan of a configuration, whatever idea it is tried with; raises like :meth:`Plan.parse`."""
    return Plan.parse(split_idea(configuration)[0])


def add_idea(configuration: Configuration, idea: str) -> Configuration:
    """A configuration with an idea: ``data=4 model=4 with num_vocab_tiling=4``."""
    return f"{split_idea(configuration)[0]}{_WITH}{idea}"


@dataclass
class WithIdeas:
    """Tries each idea once: when nothing else is worth a try, or when the budget holds no more than the ideas.

    Args:
        others: proposes what else is tried.
        ideas: as they are typed.
        evaluations: of the budget; ``None`` where it is a time.
    """

    others: Proposer
    ideas: Sequence[str]
    evaluations: int | None = None

    def propose(self, tries: Sequence[Try]) -> Suggestion | None:
        """The next configuration, with an idea or without."""
        done = {split_idea(each.configuration)[1] for each in tries}
        left = [idea for idea in self.ideas if idea not in done]
        best = best_of([each for each in tries if not split_idea(each.configuration)[1]])
        remaining = math.inf if self.evaluations is None else self.evaluations - len(tries)
        other = self.others.propose(tries) if best is None or not left or remaining > len(left) else None
        if best is None or not left or (other and (other.saving is None or other.saving > WORTH_KNOWING)):
            return other
        return Suggestion(configuration=add_idea(best.configuration, left[0]), why="an untested idea, as asked for")


class TriedIdea(BaseModel, frozen=True):
    """An idea, by the ratio of step times with and without it; undecided: 1 lies in the 90 % interval."""

    idea: str
    configuration: Configuration
    before_s: float | None = None
    after_s: float | None = None
    ratio: float | None = None
    low: float | None = None
    high: float | None = None
    verdict: Verdict
    why: str = ""


def tried_ideas(tries: Sequence[Try]) -> list[TriedIdea]:
    """How each idea of a session fared, in the order in which they were tried."""
    timed = {result.configuration: result for result in results(tries)}
    return [
        _tried(each.configuration, timed, "; ".join(one.explanation for one in outcome.feedback))
        for each, outcome in ended(tries)
        if split_idea(each.configuration)[1] and outcome.status != "lost"
    ]


def _tried(configuration: Configuration, timed: dict[Configuration, Result], why: str) -> TriedIdea:
    base, idea = split_idea(configuration)
    before, after = timed.get(base), timed.get(configuration)
    if before is None or after is None:
        return TriedIdea(idea=idea, configuration=base, verdict="failed", why=plain(why, 200))
    ratio, error = after.step_time_s / before.step_time_s, math.hypot(before.log_error, after.log_error)
    half = error * max(before.half, after.half)
    low, high = ratio * math.exp(-half), ratio * math.exp(half)
    return TriedIdea(
        idea=idea, configuration=base, before_s=before.step_time_s, after_s=after.step_time_s,
        ratio=ratio, low=low, high=high, verdict="faster" if high < 1 else "slower" if low > 1 else "undecided",
    )  # fmt: skip
