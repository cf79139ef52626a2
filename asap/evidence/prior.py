"""What is believed of configurations before any is evaluated, as arrays over a list of them."""

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from asap.plans import Plan
from asap.prediction.uncertainty.plan_distances import distinguishing, plan_distances

Array = NDArray[np.float64]
T = TypeVar("T")


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
        refused: why a configuration cannot be launched; ``None`` if it can.
        parts: seconds that those of each step take for a sequence, or all together, of shape (n, parts)
            (:func:`~asap.prediction.step_model.step_parts.step_parts`); ``None`` where they are not known.
    """

    configurations: tuple[str, ...]
    log_time: Array
    log_fill: Array | None
    effort: Array
    apart: Callable[[int], Array]
    refused: Callable[[int], str | None] = lambda index: None
    parts: Array | None = None

    @cached_property
    def index(self) -> dict[str, int]:
        """Where each configuration stands."""
        return {configuration: index for index, configuration in enumerate(self.configurations)}


def prior_of(plans: Sequence[Plan], seconds: Sequence[float] | Array, parts: Array | None = None) -> Prior:
    """Of plans that all fit and are equally easy to try, with their modelled step times and the parts of these."""
    return Prior(
        configurations=tuple(map(str, plans)),
        log_time=np.log(seconds),
        log_fill=None,
        effort=np.zeros(len(plans)),
        apart=plans_apart(plans),
        parts=parts,
    )


def plans_apart(plans: Sequence[Plan]) -> Callable[[int], Array]:
    """How far each of some plans is from all of them, as a :class:`Prior` wants it."""
    return apart(plans, distinguishing, plan_distances)


def apart(
    items: Sequence[T], says: Callable[[T], tuple[Hashable, ...]], distances: Callable[[T, T], tuple[float, ...]]
) -> Callable[[int], Array]:
    """How far each of some configurations is from all of them, as a :class:`Prior` wants it.

    In each thing few values occur, so one is compared with one example of each value.

    Args:
        items: the configurations.
        says: what one has in each thing.
        distances: doublings between two in each thing; they depend on what :obj:`says` gives there and nothing else.
    """
    things: list[tuple[int, list[int], NDArray[np.int64]]] = []
    for thing, column in enumerate(zip(*map(says, items), strict=True)):
        number = {value: code for code, value in enumerate(dict.fromkeys(column))}
        examples = [column.index(value) for value in number]
        if any(distances(items[0], items[other])[thing] for other in examples):
            things.append((thing, examples, np.array([number[value] for value in column])))

    def from_item(place: int) -> Array:
        rows = [
            np.array([distances(items[place], items[other])[thing] for other in examples])[codes]
            for thing, examples, codes in things
        ]
        return np.array(rows, dtype=float).reshape(len(things), len(items))

    return from_item
