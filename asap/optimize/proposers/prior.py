"""What is believed of configurations before any is evaluated, as arrays over a list of them."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from asap.optimize.outcome import Configuration
from asap.plans import Plan
from asap.prediction.uncertainty.residual_transfer import plan_distances

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Prior:
    """Configurations that may be tried, and the model's word on each.

    Args:
        configurations: their texts, of shape (n,).
        log_time: ``ln`` of the modelled step in seconds.
        log_fill: ``ln`` of modelled HBM over that of a device; ``None`` where memory plays no part.
        effort: what a configuration has to bring to be worth its changes, in ``ln(step time)``.
        apart: doublings between one configuration and all in each thing that differs among them, of shape (things, n)
            (:func:`plans_apart`).
        allowed: why a configuration cannot be launched; ``None`` if it can.
    """

    configurations: tuple[Configuration, ...]
    log_time: Array
    log_fill: Array | None
    effort: Array
    apart: Callable[[int], Array]
    refused: Callable[[int], str | None] = lambda index: None

    @cached_property
    def index(self) -> dict[Configuration, int]:
        """Where each configuration stands."""
        return {configuration: index for index, configuration in enumerate(self.configurations)}


def plans_apart(plans: Sequence[Plan]) -> Callable[[int], Array]:
    """How far each of some plans is from all of them, as a :class:`Prior` wants it."""

    def from_plan(place: int) -> Array:
        return np.array([plan_distances(plans[place], plan) for plan in plans]).T

    differs = from_plan(0).any(axis=1)
    return lambda place: from_plan(place)[differs]
