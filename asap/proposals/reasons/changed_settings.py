"""What differs between two plans: axes of both meshes, and levers."""

from asap.levers.lever import Lever
from asap.levers.table import changed_levers
from asap.models import Workload
from asap.plans import AXES, Plan
from asap.plans.plan import OF_WORKLOAD
from asap.plans.validity import Degrees
from asap.plans.workload import field_of
from asap.proposals.proposal import ChangedSetting


def changed_settings(plan: Plan, incumbent: Plan, workload: Workload) -> tuple[ChangedSetting, ...]:
    """Axes first, in the order of :data:`asap.plans.AXES`, then levers; before is what plan or workload say.

    Where experts lie over other axes as well, ``expert`` is all devices that they lie over, as launchers count.
    """
    meshes = (("", plan.ici, incumbent.ici), ("dcn.", plan.dcn, incumbent.dcn))
    degrees = [
        (f"{prefix}{axis}", getattr(before, axis), getattr(after, axis))
        for prefix, after, before in meshes
        for axis in AXES
        if not (workload.experts_over and axis == "expert")
    ]
    if over := workload.experts_over:
        degrees.append(("expert", *(Degrees.of(each, over).expert_devices for each in (incumbent, plan))))
    found = [ChangedSetting(name=name, before=str(was), after=str(now)) for name, was, now in degrees if was != now]
    levers = changed_levers(plan, incumbent)
    found += [
        ChangedSetting(name=one.name, before=_before(one, incumbent, workload), after=one.read(plan)) for one in levers
    ]
    return tuple(found)


def _before(lever: Lever, incumbent: Plan, workload: Workload) -> str:
    if lever.name not in OF_WORKLOAD or getattr(incumbent, lever.name) is not None:
        return lever.read(incumbent)
    return str(getattr(workload, field_of(lever.name)) or lever.read(incumbent))
