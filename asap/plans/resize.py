"""A plan with another degree of one axis, or on another number of devices: its FSDP axis takes the difference."""

from typing import get_args

from asap.core.errors import PlanError
from asap.plans.axes import Axis
from asap.plans.plan import Plan


def with_degree(plan: Plan, axis: str, degree: int) -> Plan:
    """The plan with another degree of an axis within a slice, on as many devices.

    Raises:
        PlanError: there is no such axis, or the devices cannot be divided so.
    """
    if axis not in get_args(Axis) or degree < 1:
        raise PlanError("is no axis with a degree", where=f"{axis}={degree}", hint=", ".join(get_args(Axis)))
    changed = plan.with_ici(**{axis: degree})
    return changed if axis == "data" else over(changed, plan.ici.devices)


def over(plan: Plan, devices: int) -> Plan:
    """The plan over so many devices of a slice.

    Raises:
        PlanError: the devices cannot be divided by its other axes.
    """
    others = plan.ici.devices // plan.ici.data
    if devices % others:
        raise PlanError(f"{devices} devices cannot be divided by {others}", where=str(plan.ici))
    return plan.with_ici(data=devices // others)
