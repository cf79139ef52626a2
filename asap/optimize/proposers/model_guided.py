"""The built-in proposer: the model as prior, evaluations correct it, and the next is what is expected to save most."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from asap.core.units import format_percent
from asap.evidence.step_belief import Z_90, Array, Prior, Result, StepBelief, believe
from asap.optimize.outcome import Configuration, Expectation, Outcome, Suggestion, Try
from asap.optimize.proposers.memory_belief import UNBIASED, MemoryKernel, probability_fits
from asap.optimize.proposers.refusals import Said, blamed, parts, refused_setting, words_of
from asap.optimize.proposers.repairs import LIKELY, add_repairs
from asap.optimize.results import MOST_REPEATS, ended, repeat, results
from asap.prediction.uncertainty.residual_kernel import ResidualKernel
from asap.proposals.test_worth import expected_saving

MOST_LOST = 2
"""Times that a configuration which was lost is proposed again. Judgement: how long a session tries."""
UNSURE = 0.1
"""Odds that two results are in the wrong order above which the better is measured again. Judgement: how often."""
OUT_OF_MEMORY_IN_A_ROW = 2
"""First tries out of memory, after which the smallest change that fits is tried. Judgement: the order of tries."""
_LEAST = 1e-9  # odds that stand for none


@dataclass
class ModelGuided:
    """Proposes by expected improvement (Jones, Schonlau & Welch 1998): likely to be faster, or not well known.

    Args:
        prior: the model's word on each configuration.
        kernel: how residuals of step times go together.
        memory: of the factor on modelled HBM.
        capacity: bytes of HBM of a device.
        first: what to evaluate first, as what runs now.
        known: measured before the session began.
        said: how the program is told a configuration; ``None`` where none refuses it.
    """

    prior: Prior
    kernel: ResidualKernel
    memory: MemoryKernel = UNBIASED
    capacity: float = 1.0
    first: Configuration | None = None
    known: tuple[Result, ...] = ()
    said: Said | None = None
    _apart: dict[int, Array] = field(default_factory=dict)

    def propose(self, tries: Sequence[Try]) -> Suggestion | None:
        """The next configuration; ``None`` where none is left that may be faster."""
        if self._only_lost_the_first(tries) and not self.known and self.first in self.prior.index:
            place = self.prior.index[self.first]
            if self._fits(())[place] >= LIKELY and not self._tried(tries)[place]:
                return self._suggestion(place, self.belief(tries), "what runs now, to compare with", None)
        found = self._found(tries)
        return (
            self._repeated(tries) or self._again(found, tries) or self._repair(found, tries) or self._new(found, tries)
        )

    def _only_lost_the_first(self, tries: Sequence[Try]) -> bool:
        """Whether nothing was tried but what runs now, and that was lost."""
        return all(t.configuration == self.first and t.outcome and t.outcome.status == "lost" for t in tries)

    def repaired(self, outcome: Outcome, configuration: Configuration, tries: Sequence[Try]) -> Outcome:
        """The outcome with a repair of what the feedback names: the nearest configuration that does as it advises."""
        known = [*tries, Try(number=0, configuration=configuration, why="", outcome=outcome)]
        return add_repairs(outcome, configuration, self.prior, self._odds(known))

    def expected(self, configuration: Configuration, tries: Sequence[Try]) -> Suggestion | None:
        """What is expected of a configuration, whoever proposes it; ``None`` where the prior leaves it out."""
        place = self.prior.index.get(configuration)
        if place is None or self.prior.refused(place) is not None:
            return None
        saving = self._savings(self._found(tries), tries)[place]
        return self._suggestion(place, self.belief(tries), "", None if np.isnan(saving) else float(saving))

    def best(self, tries: Sequence[Try], count: int) -> list[Suggestion]:
        """The most promising that were not tried, best first."""
        found, belief = self._found(tries), self.belief(tries)
        savings = self._savings(found, tries)
        order = np.where(self._tried(tries), np.inf, belief.mean if np.isnan(savings).all() else -savings)
        places = [int(place) for place in np.argsort(order, kind="stable") if np.isfinite(order[place])][:count]
        fastest = min((result.step_time_s for result in found), default=None)
        whys = ((place, self._why(place, belief, fastest)) for place in places)
        return [self._suggestion(place, belief, why, float(savings[place])) for place, why in whys]

    def belief(self, tries: Sequence[Try]) -> StepBelief:
        """What is believed of every step time after these tries."""
        found = [r for r in self._found(tries) if r.configuration in self.prior.index and not r.at_most]
        return believe(self.prior, self.kernel, found, [self._from(self.prior.index[r.configuration]) for r in found])

    def against_the_model(self, tries: Sequence[Try]) -> list[float]:
        """Measured over modelled step time of each configuration that was timed."""
        timed = (r for r in (*self.known, *results(tries)) if not r.at_most)
        found = (r for r in timed if r.configuration in self.prior.index)
        return [r.step_time_s / float(np.exp(self.prior.log_time[self.prior.index[r.configuration]])) for r in found]

    def _found(self, tries: Sequence[Try]) -> list[Result]:
        """What is known. A try under way counts as it is expected to end (Ginsbourger, Le Riche & Carraro 2010)."""
        return [*self.known, *results(tries), *_under_way(tries)]

    def _new(self, found: Sequence[Result], tries: Sequence[Try]) -> Suggestion | None:
        belief, saving = self.belief(tries), self._savings(found, tries)
        best = min((result.step_time_s for result in found), default=None)
        score = saving
        if best is None:
            least = belief.mean + self.prior.effort + self._doubt_against_first()
            score = np.where(
                self._fits(tries) >= LIKELY, np.log(np.maximum(self._runs(tries), _LEAST)) - least, -np.inf
            )
        score = np.where(self._tried(tries), -np.inf, score)
        for place in np.argsort(-score, kind="stable"):
            if not np.isfinite(score[place]):
                return None
            if self.prior.refused(int(place)) is None and not self.refuses(self.prior.configurations[place], tries):
                expected = None if np.isnan(saving[place]) else float(saving[place])
                return self._suggestion(int(place), belief, self._why(int(place), belief, best), expected)
        return None

    def _doubt_against_first(self) -> Array:
        """Half-width of ``ln(step time)`` against what runs now, which did not run: what is unlike it is less known."""
        if self.first is None or self.first not in self.prior.index:
            return np.zeros(len(self.prior.configurations))
        alike = self.kernel.correlation(self._from(self.prior.index[self.first]))
        return Z_90 * self.kernel.deviation * np.sqrt(np.maximum(1 - alike**2, 0.0))

    def _repair(self, found: Sequence[Result], tries: Sequence[Try]) -> Suggestion | None:
        """The repair of the last try, where nothing has run and the model's own choices do not fit."""
        last = ended(tries)[-OUT_OF_MEMORY_IN_A_ROW:]
        if found or len(last) < OUT_OF_MEMORY_IN_A_ROW or any("OUT_OF_MEMORY" not in o.codes for _, o in last):
            return None
        repairs = (each.repair.text for each in last[-1][1].feedback if each.repair is not None)
        place = next((self.prior.index[text] for text in repairs if text in self.prior.index), None)
        if place is None or self._tried(tries)[place]:
            return None
        why = f"repairs try {last[-1][0].number}: the smallest change that is likely to fit"
        return self._suggestion(place, self.belief(tries), why, None)

    def _savings(self, found: Sequence[Result], tries: Sequence[Try]) -> Array:
        """Expected share of the best step that each configuration saves; NaN where nothing was timed."""
        if not found:
            return np.full(len(self.prior.configurations), np.nan)
        belief = self.belief(tries)
        best = min(result.step_time_s for result in (*self.believed(tries), *_under_way(tries)))
        return self._odds(tries) * expected_saving(np.log(best) - belief.mean - self.prior.effort, belief.deviation)

    def _odds(self, tries: Sequence[Try]) -> Array:
        """That each configuration fits and runs."""
        return self._fits(tries) * self._runs(tries)

    def _fits(self, tries: Sequence[Try]) -> Array:
        return probability_fits(self.prior, self.memory, tries, self.capacity)

    def believed(self, tries: Sequence[Try]) -> list[Result]:
        """What is believed of each configuration that was timed, fastest first.

        Of many that were measured with noise the fastest was lucky too: a time is drawn towards what the model and the
        other times expect, the more the less well it is known.
        """
        found = [*self.known, *results(tries)]
        if not any(result.standard_error_s for result in found):
            return sorted(found, key=lambda result: result.step_time_s)
        belief, shrunk = self.belief(tries), []
        for result in found:
            place = self.prior.index.get(result.configuration)
            if place is not None and result.standard_error_s and not result.at_most:
                seconds = float(np.exp(belief.mean[place]))
                error = seconds * min(float(belief.deviation[place]), result.log_error)
                result = replace(result, step_time_s=seconds, standard_error_s=error)
            shrunk.append(result)
        return sorted(shrunk, key=lambda result: result.step_time_s)

    def _repeated(self, tries: Sequence[Try]) -> Suggestion | None:
        """What :func:`repeat` asks for."""
        found = repeat(tries, self.first, lambda: self.believed(tries)[0].configuration)
        place = self.prior.index.get(found[0]) if found else None
        return self._suggestion(place, self.belief(tries), found[1], None) if found and place is not None else None

    def _again(self, found: Sequence[Result], tries: Sequence[Try]) -> Suggestion | None:
        """The better of two whose order the noise leaves open, unless they are as good as equal or well measured."""
        if len(found) < 2:
            return None
        first, second = sorted(found, key=lambda result: result.step_time_s)[:2]
        error = float(np.hypot(first.log_error, second.log_error))
        gap = float(np.log(second.step_time_s / first.step_time_s))
        if not error or _upper_tail(gap / error) < UNSURE or error < self.kernel.deviation / 10:
            return None
        worse = max((first, second), key=lambda result: (result.log_error, result.configuration))
        if worse.tries >= MOST_REPEATS or worse.configuration not in self.prior.index:
            return None
        saving = float(expected_saving(np.array([-gap]), np.array([error]))[0])
        why = f"again: noise leaves open which of the best two is faster ({format_percent(gap)} apart)"
        return self._suggestion(self.prior.index[worse.configuration], self.belief(tries), why, saving)

    def _tried(self, tries: Sequence[Try]) -> np.ndarray:
        """Configurations that need no further try: those on record, and those that were not merely lost."""
        done = {result.configuration for result in self.known}
        done |= {each.configuration for each in tries if each.outcome is None}
        lost: dict[Configuration, int] = {}
        for each, outcome in ended(tries):
            if outcome.status == "lost":
                lost[each.configuration] = lost.get(each.configuration, 0) + 1
            if outcome.status != "lost" or lost[each.configuration] > MOST_LOST:
                done.add(each.configuration)
        mask = np.zeros(len(self.prior.configurations), dtype=bool)
        mask[[self.prior.index[each] for each in done if each in self.prior.index]] = True
        return mask

    def _runs(self, tries: Sequence[Try]) -> Array:
        """That a configuration runs at all: the nearer to one that could not, the less likely."""
        odds = np.ones(len(self.prior.configurations))
        for each, outcome in ended(tries):
            place = self.prior.index.get(each.configuration)
            died = outcome.status == "failed" or (outcome.status == "rejected" and "OUT_OF_MEMORY" not in outcome.codes)
            if died and place is not None:
                odds = odds * (1 - np.exp(-self._from(place).sum(axis=-2) / self.kernel.reach))
        blame, every = blamed(tries), self.prior.configurations
        return odds * [math.prod(1 - blame.get(each, 0.0) for each in parts(words_of(c))) for c in every]

    def refuses(self, configuration: Configuration, tries: Sequence[Try]) -> str | None:
        """The setting for which the program refuses it, by the messages so far; ``None`` where none says so."""
        if self.said is None or not (blame := blamed(tries, self.said)):
            return None
        return refused_setting(self.said(configuration), blame)

    def _from(self, place: int) -> Array:
        if place not in self._apart:
            self._apart[place] = self.prior.apart(place)
        return self._apart[place]

    def _why(self, place: int, belief: StepBelief, best: float | None) -> str:
        if best is None:
            return "likely to fit, and fast" if self.first is None else "likely to fit, fast, and near what runs now"
        gain = 1 - float(np.exp(belief.mean[place])) / best
        if gain > 0:
            return f"expected to take {format_percent(gain)} less than the best so far"
        return f"not well known: it may be faster, although {format_percent(-gain)} more is expected"

    def _suggestion(self, place: int, belief: StepBelief, why: str, saving: float | None) -> Suggestion:
        mean, half = float(belief.mean[place]), Z_90 * float(belief.deviation[place])
        fill = None if self.prior.log_fill is None else float(np.exp(self.prior.log_fill[place])) * self.capacity
        low, value, high = (float(np.exp(mean + side * half)) for side in (-1, 0, 1))
        predicted = Expectation(step_time_s=value, low_s=low, high_s=high, hbm_bytes=fill)
        return Suggestion(configuration=self.prior.configurations[place], why=why, predicted=predicted, saving=saving)


def _under_way(tries: Sequence[Try]) -> list[Result]:
    return [
        Result(each.configuration, each.predicted.step_time_s, 0.0, 1)
        for each in tries
        if each.outcome is None and each.predicted.step_time_s
    ]


def _upper_tail(z: float) -> float:
    from scipy.special import ndtr

    return float(ndtr(-z))
