"""Every plan there is: all ways to factor the devices over the axes, filtered by the rules of validity."""

from collections.abc import Iterable, Iterator
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from asap.plans.plan import AXES, Mesh, Plan
from asap.plans.validity import RULES, Constraints, Degrees

Table = NDArray[np.int64]


def factorisations(devices: int, axes: Iterable[str] = AXES) -> Table:
    """All meshes whose degrees multiply to ``devices``, with degree 1 outside of ``axes``.

    Returns:
        Integers of shape (meshes, 6) in the order of :data:`asap.plans.AXES`. For 512 devices and six axes
        there are 2,002.
    """
    free = [AXES.index(axis) for axis in axes]
    rows = np.ones((0, len(AXES)), dtype=np.int64)
    if free:
        ordered = np.array(list(_ordered(devices, len(free))), dtype=np.int64)
        rows = np.ones((len(ordered), len(AXES)), dtype=np.int64)
        rows[:, free] = ordered
    return rows


def enumerate_plans(constraints: Constraints, axes: Iterable[str] = AXES, like: Plan | None = None) -> list[Plan]:
    """Every valid plan over ``axes``, with the DCN mesh and the settings of ``like``.

    Args:
        constraints: ``devices_per_slice`` must be known.
        axes: axes that may have a degree above 1 inside a slice.
        like: the plan that lends everything but its ICI mesh.
    """
    if constraints.devices_per_slice is None:
        raise ValueError("enumeration needs the number of devices in a slice")
    template = like or Plan()
    table = factorisations(constraints.devices_per_slice, axes)
    table = table[valid(table, constraints, template)]
    return [template.model_copy(update={"ici": mesh_of(row)}) for row in table]


def valid(table: Table, constraints: Constraints, like: Plan) -> NDArray[np.bool_]:
    """Which rows of an ICI table are valid, next to the DCN mesh and settings of ``like``."""
    dcn = np.array(like.dcn.degrees)
    totals = dict(zip(AXES, (table * dcn).T, strict=True))
    degrees = Degrees(
        **totals,
        ici_devices=table.prod(axis=1),
        dcn_devices=np.full(len(table), like.dcn.devices),
        microbatches=like.microbatches or 1,
        pipeline_repeats=like.pipeline_repeats,
        experts_over=constraints.experts_over,
        split=constraints.split,
    )
    passed = np.ones(len(table), dtype=bool)
    for rule in RULES:
        fact = getattr(constraints, rule.needs)
        if fact is not None:
            passed &= np.asarray(rule.holds(degrees, fact), dtype=bool)
    return passed


def mesh_of(row: NDArray[np.int64]) -> Mesh:
    """A row of a table as a mesh."""
    return Mesh(**{axis: int(degree) for axis, degree in zip(AXES, row, strict=True)})


@lru_cache(maxsize=256)
def _ordered(number: int, parts: int) -> tuple[tuple[int, ...], ...]:
    if parts == 1:
        return ((number,),)
    return tuple((divisor, *rest) for divisor in _divisors(number) for rest in _ordered(number // divisor, parts - 1))


def _divisors(number: int) -> Iterator[int]:
    return (candidate for candidate in range(1, number + 1) if number % candidate == 0)
