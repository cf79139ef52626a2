"""How far the devices of an axis lie apart: inside a node, or between nodes."""

import math
from typing import Literal

from asap.plans import Plan
from asap.plans.axes import Axis

INNERMOST: tuple[Axis, ...] = ("model", "seq", "expert", "data", "replica", "stage")
"""Axes from neighbouring devices outwards, as launchers number the ranks and as predictions take them."""
Reach = Literal["inside a node", "between nodes", "inside nodes and between them"]


def reach(plan: Plan, axis: Axis, domain: int) -> Reach:
    """Where the devices of an axis lie, with so many devices in a node."""
    inner = math.prod(plan.degree(one) for one in INNERMOST[: INNERMOST.index(axis)])
    outer = inner * plan.degree(axis)
    if outer <= domain and domain % outer == 0:
        return "inside a node"
    return "between nodes" if inner >= domain else "inside nodes and between them"


def leaves_node(plan: Plan, axis: Axis, domain: int | None) -> bool:
    """Whether an axis goes over the network between nodes; without nodes (``None``), between slices."""
    if domain is None:
        return getattr(plan.dcn, axis) > 1
    return plan.degree(axis) > 1 and reach(plan, axis, domain) != "inside a node"
