"""A plan on another number of devices."""

import math
from typing import get_args

from asap.core.errors import PlanError
from asap.plans.axes import Axis
from asap.plans.plan import Mesh, Plan

_OWN_DEVICES: tuple[Axis, ...] = ("stage", "expert", "seq", "model")


def over_devices(plan: Plan, devices: int, slices: int = 1) -> Plan:
    """The plan over so many devices of a job: its data parallelism takes the difference, and other axes are halved
    where they do not go into a slice; slices replicate it.

    Raises:
        PlanError: it cannot be laid over so many devices.
    """
    each, rest = divmod(devices, slices)
    degrees = {axis: plan.degree(axis) for axis in _OWN_DEVICES}
    while not rest and each % math.prod(degrees.values()):
        widest = max(degrees, key=lambda axis: degrees[axis])
        if degrees[widest] % 2:
            break
        degrees[widest] //= 2
    others = math.prod(degrees.values())
    if rest or each % others:
        raise PlanError(f"cannot be laid over {devices} devices", where=str(plan), hint="name the plan to run there")
    replicated = plan.degree("data") == 1 and plan.degree("replica") > 1
    own = dict.fromkeys(get_args(Axis), 1) | degrees | {"replica" if replicated else "data": each // others}
    return plan.with_ici(**own).model_copy(update={"dcn": Mesh(replica=slices) if slices > 1 else Mesh()})
