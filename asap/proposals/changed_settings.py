"""What differs between two plans: axes of both meshes, and levers."""

from asap.levers.table import changed_levers
from asap.plans import AXES, Plan
from asap.proposals.proposal import ChangedSetting


def changed_settings(plan: Plan, incumbent: Plan) -> tuple[ChangedSetting, ...]:
    """Axes first, in the order of :data:`asap.plans.AXES`, then levers."""
    meshes = (("", plan.ici, incumbent.ici), ("dcn.", plan.dcn, incumbent.dcn))
    found = [
        ChangedSetting(name=f"{prefix}{axis}", before=str(getattr(before, axis)), after=str(getattr(after, axis)))
        for prefix, after, before in meshes
        for axis in AXES
        if getattr(after, axis) != getattr(before, axis)
    ]
    levers = changed_levers(plan, incumbent)
    found += [ChangedSetting(name=one.name, before=one.read(incumbent), after=one.read(plan)) for one in levers]
    return tuple(found)
