"""What tries have shown so far: one result for each configuration, of all tries that timed it, and the best."""

import math
from collections.abc import Iterable, Sequence

from asap.evidence.step_belief import Result
from asap.optimize.codes import Code
from asap.optimize.outcome import Configuration, Outcome, Try
from asap.optimize.run_noise import RunNoise, varying


def results(tries: Iterable[Try]) -> list[Result]:
    """One for each configuration that was timed, fastest first; a time of full effort replaces those of reduced.

    Their errors hold what differs between runs of one configuration.
    """
    timed: dict[Configuration, list[Outcome]] = {}
    for each in tries:
        if each.outcome is not None and each.outcome.step_time_s is not None and each.outcome.status == "done":
            timed.setdefault(each.configuration, []).append(each.outcome)
    noise = RunNoise.of(timed.values())
    found = [_pooled(configuration, outcomes, noise) for configuration, outcomes in timed.items()]
    return sorted(found, key=lambda result: result.step_time_s)


def noise_of(tries: Iterable[Try]) -> RunNoise:
    """How much runs of one configuration differ."""
    timed: dict[Configuration, list[Outcome]] = {}
    for each in tries:
        if each.outcome is not None and each.outcome.status == "done":
            timed.setdefault(each.configuration, []).append(each.outcome)
    return RunNoise.of(timed.values())


def best_of(tries: Iterable[Try]) -> Result | None:
    """The fastest so far."""
    return next(iter(results(tries)), None)


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
    return Result(configuration, mean, error, len(outcomes), not full, noise.degrees if varies else math.inf)
