"""How far a plan lies from the incumbent, and what that distance has meant in published runs.

Distance counts doublings: one doubling takes a factor of two from one axis and gives it to another. A doubling on an
axis that the incumbent does not use counts twice, since none of that axis's traffic was measured.
"""

import math
from collections.abc import Sequence

from asap.plans import AXES, Plan

SPREAD = (0.0, 0.60, 1.12, 2.04)
"""90th percentile of ``|ln(step time ratio)|`` between two published runs that differ in 0, 1, 2 and 3 doublings of
their mesh and in nothing else (3,170, 1,634 and 180 ordered pairs of the development measurements; scripts/calibrate
recomputes it). Beyond 3 the last step is continued."""


def doublings(plan: Plan, incumbent: Plan) -> float:
    """Doublings moved from axis to axis between two plans for the same number of devices."""
    return sum(max(change, 0.0) for change in _changes(plan, incumbent).values())


def weighted_doublings(plan: Plan, incumbent: Plan) -> float:
    """Doublings moved, with those on axes that the incumbent does not use counted twice."""
    changes = _changes(plan, incumbent)
    unmeasured = sum(change for axis, change in changes.items() if change > 0 and incumbent.degree(axis) == 1)
    return sum(max(change, 0.0) for change in changes.values()) + unmeasured


def spread(moved: float, table: Sequence[float] = SPREAD) -> float:
    """90 % half-width of ``ln(step time ratio)`` at so many doublings, by published runs."""
    lower = min(math.floor(moved), len(table) - 2)
    return table[lower] + (moved - lower) * (table[lower + 1] - table[lower])


def _changes(plan: Plan, incumbent: Plan) -> dict:
    return {axis: math.log2(plan.degree(axis) / incumbent.degree(axis)) for axis in AXES}
