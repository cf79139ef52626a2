"""When the loop ends: what the next evaluation is expected to save against what it costs, and the budget."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median
from typing import Literal

from pydantic import BaseModel, Field

from asap.core.units import HOUR, counted, format_percent, format_seconds, significant
from asap.optimize.outcome import Cost, Suggestion, Try
from asap.optimize.results import best_of, ended

WORTH_KNOWING = 0.002
"""Expected share of a step below which a further evaluation is not worth a look, where nothing says how long the
training is: a fifth of the 1 % that two short runs can tell apart
(:data:`asap.proposals.selection.choice.MEASURABLE`)."""
SAME_FAILURES = 2
"""Failures in a row for one reason that is not the configuration's. Judgement: when a session ends."""

Reason = Literal["nothing_left", "not_worth_it", "budget", "failing", "interrupted"]


class Stopped(BaseModel, frozen=True):
    """Why the loop ended."""

    reason: Reason
    statement: str


class Worth(BaseModel, frozen=True):
    """What the next evaluation is expected to save, and to cost."""

    saving_chip_hours: float | None = Field(default=None, description="over the steps to go; null: not known how many")
    saving_share: float | None = Field(default=None, description="of the best step time so far")
    cost: Cost


@dataclass(frozen=True)
class Machine:
    """What an evaluation occupies.

    Args:
        chips: accelerators; 0 for the model and the compiler.
        price: of a chip-hour.
        currency: of the price.
    """

    chips: int = 0
    price: float | None = None
    currency: str | None = None

    def cost(self, seconds: float) -> Cost:
        """Of occupying it so long."""
        chip_hours = self.chips * seconds / HOUR
        if self.price is None or not self.chips:
            return Cost(seconds=seconds, chip_hours=chip_hours)
        return Cost(seconds=seconds, chip_hours=chip_hours, money=chip_hours * self.price, currency=self.currency)


@dataclass(frozen=True)
class StoppingRule:
    """Judges each next evaluation.

    Args:
        evaluations: most tries, those that failed included.
        seconds: most time over all tries.
        steps_to_go: steps that are still to be trained.
        training_chips: that they are trained on.
        machine: what an evaluation occupies.
        first_guess_s: what a try is taken to last before one has ended.
    """

    evaluations: int | None = None
    seconds: float | None = None
    steps_to_go: int | None = None
    training_chips: int = 0
    machine: Machine = Machine()
    first_guess_s: float = 0.0

    def worth(self, tries: Sequence[Try], suggestion: Suggestion) -> Worth:
        """The next evaluation's expected saving against its expected cost."""
        lasted = [outcome.seconds for _, outcome in ended(tries) if outcome.status == "done"]
        cost = self.machine.cost(median(lasted) if lasted else self.first_guess_s)
        best = best_of(tries)
        if suggestion.saving is None or best is None:
            return Worth(cost=cost)
        saved = None
        if self.steps_to_go is not None:
            saved = suggestion.saving * best.step_time_s * self.steps_to_go * self.training_chips / HOUR
        return Worth(saving_chip_hours=saved, saving_share=suggestion.saving, cost=cost)

    def over(self, tries: Sequence[Try]) -> Stopped | None:
        """Why nothing more is even proposed: the budget is spent, or tries fail alike."""
        if self.evaluations is not None and len(tries) >= self.evaluations:
            budget = counted(self.evaluations, "evaluation")
            return Stopped(reason="budget", statement=f"The budget of {budget} is spent.")
        if not self.seconds_left(tries):
            return Stopped(reason="budget", statement=f"The budget of {format_seconds(self.seconds or 0.0)} is spent.")
        return self._failing(tries)

    def seconds_left(self, tries: Sequence[Try]) -> float:
        """What is left of a budget of time, after the tries that have ended; infinite without one."""
        if self.seconds is None:
            return math.inf
        return max(self.seconds - sum(outcome.seconds for _, outcome in ended(tries)), 0.0)

    def judge(self, tries: Sequence[Try], suggestion: Suggestion) -> Stopped | None:
        """Why the suggestion is not evaluated; ``None`` if it is."""
        return self._time(tries, self.worth(tries, suggestion)) or self._gain(tries, suggestion)

    def _time(self, tries: Sequence[Try], worth: Worth) -> Stopped | None:
        left = self.seconds_left(tries)
        under_way = sum(each.outcome is None for each in tries)
        if self.seconds is None or (under_way + 1) * worth.cost.seconds <= left:
            return None
        budget, takes = format_seconds(self.seconds), format_seconds(worth.cost.seconds)
        statement = f"The budget of {budget} is spent: {format_seconds(left)} left, and a try takes {takes}."
        return Stopped(reason="budget", statement=statement)

    def _failing(self, tries: Sequence[Try]) -> Stopped | None:
        last = [outcome for _, outcome in ended(tries)][-SAME_FAILURES:]
        same = frozenset.intersection(*(outcome.codes for outcome in last)) if last else frozenset()
        if len(last) < SAME_FAILURES or any(outcome.status != "failed" for outcome in last) or not same:
            return None
        found = next(each for each in last[-1].feedback if each.code in same)
        statement = f"The last {SAME_FAILURES} tries failed alike: {found.explanation}; {found.suggestion}."
        return Stopped(reason="failing", statement=statement)

    def _gain(self, tries: Sequence[Try], suggestion: Suggestion) -> Stopped | None:
        worth = self.worth(tries, suggestion)
        if worth.saving_share is None:
            return None
        if worth.saving_chip_hours is not None and worth.cost.chip_hours:
            if worth.saving_chip_hours > worth.cost.chip_hours:
                return None
            saved, costs = significant(worth.saving_chip_hours), significant(worth.cost.chip_hours)
            statement = f"The next evaluation costs {costs} chip-hours and is expected to save {saved}."
            return Stopped(reason="not_worth_it", statement=statement)
        if worth.saving_share > WORTH_KNOWING:
            return None
        share = format_percent(worth.saving_share)
        return Stopped(reason="not_worth_it", statement=f"The next evaluation is expected to save {share} of a step.")
