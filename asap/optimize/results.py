"""What tries have shown so far: one result for each configuration, the best, and how much runs differ."""

import math
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from statistics import median

import numpy as np

from asap.evidence.step_belief import Z_90, Array, Result
from asap.optimize.outcome import Code, Configuration, Outcome, Try
from asap.proposals.selection.choice import MEASURABLE

POSSIBLE = np.geomspace(1e-3, 0.5, 48)
"""Deviations between runs, each as likely as another before anything ran twice (Jeffreys' prior of a scale)."""
RECKONED = 0.25
"""Odds of noise that matters above which what runs now and the best are measured again. Judgement: how often."""
_APART = np.geomspace(1e-2, 1.0, 32)
"""Deviations between configurations that no model knows, each as likely as another."""
MOST_REPEATS = 4  # runs of one configuration; judgement: how sure its order is
CONFIRMED = 3
"""Runs of the best where runs differ. Judgement: how sure its gain is."""
BETWEEN = 4
"""Runs of others after which what runs now is measured again: machines change. Judgement: how often."""


@dataclass(frozen=True)
class RunNoise:
    """Standard deviation of ``ln(step time)`` of a run, and how sure that is.

    What is measured has a mixture of normal distributions; ``deviation`` is the harmonic mean of theirs.
    """

    deviation: float = 0.0
    half: float = Z_90
    """Half-width of the 90 % interval of what is measured, over its standard error."""
    likely: float = 0.0
    """Probability that one run of each does not tell two configurations apart as far as short runs can."""
    odds: Array = field(default_factory=lambda: np.full(len(POSSIBLE), 1 / len(POSSIBLE)), compare=False)
    """Of each that is possible."""

    @classmethod
    def of(cls, timed: Iterable[Sequence[Outcome]]) -> "RunNoise":
        """From the outcomes of each configuration; none where nothing varies, as what a compiler says."""
        squares, degrees, within = 0.0, 0, list[float]()
        for outcomes in timed:
            found = [(each.step_time_s, each.standard_error_s) for each in outcomes]
            measured = [(seconds, error) for seconds, error in found if seconds and error]
            logs = [math.log(seconds) for seconds, _ in measured]
            within += [error / seconds for seconds, error in measured]
            squares += sum((log - sum(logs) / len(logs)) ** 2 for log in logs)
            degrees += max(len(logs) - 1, 0)
        if not within:
            return cls()
        variance = POSSIBLE**2 + median(within) ** 2
        log_odds = -(degrees * np.log(variance) + squares / variance) / 2
        odds = np.exp(log_odds - log_odds.max())
        odds /= odds.sum()
        deviation = float(odds @ (1 / variance)) ** -0.5
        half = _half(odds, np.sqrt(variance) / deviation, np.zeros(len(odds)))
        return cls(deviation, half, float(odds[POSSIBLE > MEASURABLE].sum()), odds)

    @property
    def matters(self) -> bool:
        """Whether it is reckoned with that one run of each does not tell two configurations apart."""
        return self.likely > RECKONED


def varying(outcome: Outcome) -> bool:
    """Whether it was measured, and would be another the next time."""
    return bool(outcome.standard_error_s)


def results(tries: Iterable[Try]) -> list[Result]:
    """One for each configuration that was timed, fastest first; a time of full effort replaces those of reduced.

    Their errors hold what differs between runs of one configuration.
    """
    timed = _timed(tries)
    noise = RunNoise.of(timed.values())
    found = [_pooled(configuration, outcomes, noise) for configuration, outcomes in timed.items()]
    return sorted(found, key=lambda result: result.step_time_s)


def noise_of(tries: Iterable[Try]) -> RunNoise:
    """How much runs of one configuration differ."""
    return RunNoise.of(_timed(tries).values())


def repeat(
    tries: Sequence[Try], first: Configuration | None, best: Callable[[], Configuration]
) -> tuple[Configuration, str] | None:
    """What has to run once more, and why: what runs now, which tells how much runs differ, and again between others;
    the best, before it is called that. Tries under way count as if they had ended.

    Args:
        tries: so far.
        first: what runs now.
        best: of what was timed.
    """
    timed, noise = _timed(tries), noise_of(tries)
    if not noise.deviation:
        return None
    counts = Counter(each.configuration for each in tries if each.outcome is None or each.outcome.step_time_s)
    now = first if first and counts[first] else next(iter(timed))
    others = counts.total() - counts[now]
    several = noise.matters and len(timed.get(now, ())) > 1
    wanted = min(CONFIRMED + others // BETWEEN, MOST_REPEATS) if several else 2
    if counts[now] < wanted:
        return now, "again: how much runs of one configuration differ"
    if noise.matters and 0 < counts[found := best()] < CONFIRMED and found != now:
        return found, "again: confirms the best before it is called that"
    return None


def shrunk(tries: Iterable[Try]) -> list[Result]:
    """What is believed of each configuration that was timed where no model says what to expect, fastest first.

    Of many that were measured with noise the fastest was lucky too: each is drawn towards the mean of all, by the
    share of their scatter that is noise. How much runs differ, and how much configurations do, is averaged over
    (Gelman et al., Bayesian Data Analysis, section 5.4).
    """
    tries = list(tries)
    found, noise = results(tries), noise_of(tries)
    if len(found) < 4 or not noise.matters:
        return found
    logs, runs = np.log([each.step_time_s for each in found]), np.array([each.tries for each in found])
    error, apart = POSSIBLE[:, None, None] ** 2 / runs, _APART[:, None] ** 2
    weight = 1 / (error + apart)
    certain = weight.sum(-1, keepdims=True)
    off = logs - (weight * logs).sum(-1, keepdims=True) / certain
    likely = (np.log(weight) - weight * off**2).sum(-1) - np.log(certain[..., 0])
    odds = noise.odds[:, None] * np.exp((likely - likely.max()) / 2)
    odds /= odds.sum()
    lost = error * weight
    deviations = np.sqrt(error * (1 - lost) + lost**2 / certain)
    drawn = []
    for place, each in enumerate(found):
        believed, scatter = logs[place] - (lost * off)[..., place], deviations[..., place]
        mean = (odds * believed).sum()
        total = math.sqrt((odds * (scatter**2 + (believed - mean) ** 2)).sum())
        half = _half(odds.ravel(), scatter.ravel() / total, (believed - mean).ravel() / total)
        seconds = math.exp(mean)
        drawn.append(replace(each, step_time_s=seconds, standard_error_s=seconds * total, half=half))
    return sorted(drawn, key=lambda result: result.step_time_s)


def _half(odds: Array, deviations: Array, means: Array) -> float:
    """Half-width about zero of the interval that holds 90 % of a mixture of normal distributions."""
    from scipy.special import ndtr

    widths, counts = np.geomspace(0.3, 30.0, 100)[:, None], odds > odds.max() / 1000
    deviations, means, odds = deviations[counts], means[counts], odds[counts] / odds[counts].sum()
    inside = (ndtr((widths - means) / deviations) - ndtr((-widths - means) / deviations)) @ odds
    return float(np.interp(0.9, inside, widths[:, 0]))


def _timed(tries: Iterable[Try]) -> dict[Configuration, list[Outcome]]:
    """What was timed of each configuration."""
    timed: dict[Configuration, list[Outcome]] = {}
    for each, outcome in ended(tries):
        if outcome.status == "done" and outcome.step_time_s is not None:
            timed.setdefault(each.configuration, []).append(outcome)
    return timed


def step_times(tries: Iterable[Try]) -> list[float]:
    """Seconds of a step of each configuration that was timed, fastest first."""
    return [each.step_time_s for each in results(tries)]


def best_of(tries: Iterable[Try]) -> Result | None:
    """The fastest so far."""
    return next(iter(results(tries)), None)


def language_model_record(tries: Sequence[Try]) -> Iterator[str]:
    """What a language model brought: how often it chose otherwise than the engine, and how often that was faster."""
    own = [each for each in tries if each.instead_of is not None]
    if not own:
        return
    overruled = sum(each.overrules for each in own)
    against = f", {overruled} of these against what the engine expects" if overruled else ""
    faster = [each for each in own if _is_new_best(each, tries)]
    numbers = f" (try {', '.join(str(each.number) for each in faster)})" if faster else ""
    yield (
        f"the language model chose otherwise than the engine in {len(own)} of {len(tries)} tries"
        f"{against}; {len(faster)} of the {len(own)} became the best so far{numbers}"
    )


def _is_new_best(each: Try, tries: Sequence[Try]) -> bool:
    seconds = each.outcome and each.outcome.step_time_s
    before = best_of(tries[: each.number - 1])
    return bool(seconds) and (before is None or seconds < before.step_time_s)


def ended(tries: Iterable[Try]) -> list[tuple[Try, Outcome]]:
    """Tries that have an outcome, with it."""
    return [(each, each.outcome) for each in tries if each.outcome is not None]


def _pooled(configuration: Configuration, timed: Sequence[Outcome], noise: RunNoise) -> Result:
    full = [outcome for outcome in timed if Code.REDUCED_EFFORT not in outcome.codes]
    outcomes = full or timed
    varies = any(map(varying, outcomes))
    weights = [1 if varies and noise.matters else outcome.steps or 1 for outcome in outcomes]
    times = [outcome.step_time_s or 0.0 for outcome in outcomes]
    total = sum(weights)
    mean = sum(weight * time for weight, time in zip(weights, times, strict=True)) / total
    inside = sum((w / total * (o.standard_error_s or 0.0)) ** 2 for w, o in zip(weights, outcomes, strict=True))
    between = (noise.deviation * mean) ** 2 * sum((w / total) ** 2 for w in weights) if varies else 0.0
    error = math.sqrt(max(inside, between))
    return Result(configuration, mean, error, len(outcomes), not full, noise.half if varies else Z_90)
