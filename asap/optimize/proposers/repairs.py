"""Repairs of configurations: the nearest other one that does what the feedback on this one advises."""

from collections.abc import Iterator

import numpy as np

from asap.core.feedback import Feedback, Repair
from asap.evidence.step_belief import Array, Prior
from asap.optimize.outcome import Code, Configuration, Outcome
from asap.plans import AXES, Plan

LIKELY = 0.5
"""Probability to run that a repair has at least. Judgement: which are tried."""
_BY_AXIS = (Code.EXPOSED_COLLECTIVE, Code.SYNCHRONOUS_COLLECTIVE)


def add_repairs(outcome: Outcome, configuration: Configuration, prior: Prior, odds: Array) -> Outcome:
    """The outcome, with a repair wherever one of the prior's configurations is one.

    Args:
        outcome: of the configuration.
        configuration: of the prior; another is left as it is.
        prior: the configurations.
        odds: that each of them runs.
    """
    place = prior.index.get(configuration)
    if place is None or not outcome.feedback:
        return outcome
    said = tuple(_add_repair(each, place, prior, odds) for each in outcome.feedback)
    return outcome.model_copy(update={"feedback": said})


def _add_repair(said: Feedback, place: int, prior: Prior, odds: Array) -> Feedback:
    advised = _advised(said, place, prior)
    if said.repair is not None or advised is None:
        return said
    found = next(_nearest(advised & (odds >= LIKELY), place, prior), None)
    return said if found is None else said.model_copy(update={"repair": Repair(text=prior.configurations[found])})


def _advised(said: Feedback, place: int, prior: Prior) -> np.ndarray | None:
    """The configurations that do what is advised; ``None`` where the advice names none."""
    fill = prior.log_fill
    if said.code == Code.OUT_OF_MEMORY and fill is not None:
        return fill < fill[place]
    if said.code == Code.MEMORY_TO_SPARE and fill is not None:
        return (fill > fill[place]) & (prior.log_time < prior.log_time[place])
    if said.code in _BY_AXIS and said.axis in AXES:
        degrees = np.array([Plan.parse(text).degree(said.axis) for text in prior.configurations])
        return degrees < degrees[place]
    return None


def _nearest(wanted: np.ndarray, place: int, prior: Prior) -> Iterator[int]:
    """Those of them that can be launched: the nearest first, of equally near ones the fastest by the model."""
    distance = prior.apart(place).sum(axis=0)
    for other in np.lexsort((prior.log_time, distance)):
        if wanted[other] and other != place and prior.refused(int(other)) is None:
            yield int(other)
