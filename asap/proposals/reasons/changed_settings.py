"""What differs between two plans: axes of both meshes, and levers."""

from asap.levers.lever import Lever
from asap.levers.table import changed_levers
from asap.models import Workload
from asap.plans import AXES, Plan
from asap.plans.plan import OF_WORKLOAD
from asap.plans.workload import field_of
from asap.proposals.proposal import ChangedSetting


def changed_settings(plan: Plan, incumbent: Plan, workload: Workload) -> tuple[ChangedSetting, ...]:
    """Axes first, in the order of :data:`asap.plans.AXES`, then levers; before is what plan or workload say."""
    meshes = (("", plan.ici, incumbent.ici), ("dcn.", plan.dcn, incumbent.dcn))
    found = [
        ChangedSetting(name=f"{prefix}{axis}", before=str(getattr(before, axis)), after=str(getattr(after, axis)))
        for prefix, after, before in meshes
        for axis in AXES
        if getattr(after, axis) != getattr(before, axis)
    ]
    levers = changed_levers(plan, incumbent)
    found += [
        ChangedSetting(name=one.name, before=_before(one, incumbent, workload), after=one.read(plan)) for one in levers
    ]
    return tuple(found)


def _before(lever: Lever, incumbent: Plan, workload: Workload) -> str:
    if lever.name not in OF_WORKLOAD or getattr(incumbent, lever.name) is not None:
        return lever.read(incumbent)
    return str(getattr(workload, field_of(lever.name)) or lever.read(incumbent))
