"""How far a plan lies from the incumbent, and what that distance has meant in published runs.

Distance counts doublings: one doubling takes a factor of two from one axis and gives it to another.
"""

import math
from collections.abc import Sequence

from asap.plans import AXES, Plan

SPREAD = (0.0, 0.48, 0.79, 0.97)
"""90th percentile of ``|ln(step time ratio)|`` between two published runs of one group that differ in so many doublings
of their mesh and in nothing else (1, 2 and 3: 3,682, 1,742 and 280 ordered pairs of the development measurements, which
tests/calibration/test_pairs.py counts again). Beyond 3 the last step is continued."""


def doublings(plan: Plan, incumbent: Plan) -> float:
    """Doublings moved from axis to axis between two plans for the same number of devices."""
    return sum(max(change, 0.0) for change in _changes(plan, incumbent).values())


def spread(moved: float, table: Sequence[float] = SPREAD) -> float:
    """90 % half-width of ``ln(step time ratio)`` at so many doublings, by published runs."""
    lower = min(math.floor(moved), len(table) - 2)
    return table[lower] + (moved - lower) * (table[lower + 1] - table[lower])


def _changes(plan: Plan, incumbent: Plan) -> dict:
    return {axis: math.log2(plan.degree(axis) / incumbent.degree(axis)) for axis in AXES}
