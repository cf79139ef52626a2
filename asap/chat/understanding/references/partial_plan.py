"""A plan of which some degrees were named: the other axes stay as they run now, data parallelism takes the rest."""

import math

from asap.plans import Plan
from asap.plans.axes import MEANINGS, Axis
from asap.prediction.predict_study import usual_axes
from asap.study.study import Study


def filled(study: Study, plan: Plan) -> Plan:
    """The plan over all devices of a slice.

    Axes that it does not name keep their degree where the devices can be divided so; else they are one. Where data
    parallelism itself is named, the widest of the others gives or takes the devices.
    """
    devices, now = study.constraints.devices_per_slice, study.plan
    axes: list[Axis] = [axis for axis in MEANINGS if plan.degree(axis) > 1 or axis in plan.ici.model_fields_set]
    if devices is None or plan.ici.devices >= devices or devices % plan.ici.devices:
        return plan
    if now is not None and axes and all(now.degree(axis) == plan.degree(axis) for axis in axes):
        return plan.model_copy(update={"ici": now.ici})
    data = data_axis(study)
    if {"data", "replica"} & set(named_axes(plan)):
        return _beside_data(plan, now, axes, devices) or plan
    kept = {axis: getattr(now.ici, axis) for axis in MEANINGS if axis not in {*axes, "data", "replica"}} if now else {}
    rest, left = divmod(devices, plan.ici.devices * math.prod(kept.values()))
    if not kept or left or rest < 1:
        return plan.with_ici(**{data: devices // plan.ici.devices})
    other: Axis = "replica" if data == "data" else "data"
    beside = getattr(now.ici, other) if now is not None else 1
    return plan.with_ici(**kept, **({data: rest} if rest % beside else {other: beside, data: rest // beside}))


def named_axes(plan: Plan) -> list[Axis]:
    """The axes that a plan names with a degree."""
    return [axis for axis in MEANINGS if plan.degree(axis) > 1]


def data_axis(study: Study) -> Axis:
    """The axis that takes freed devices: the run's own kind of data parallelism."""
    now = study.plan
    if now is not None and (now.ici.data > 1) != (now.ici.replica > 1):
        return "data" if now.ici.data > 1 else "replica"
    return "data" if "data" in usual_axes(study) else "replica"


def _beside_data(plan: Plan, now: Plan | None, named: list[Axis], devices: int) -> Plan | None:
    """The plan with the widest axis that is not named over the rest, and the others as now; ``None`` if they cannot."""
    others = {axis: getattr(now.ici, axis) for axis in MEANINGS if axis not in named} if now else {}
    if not others:
        return None
    widest = max(others, key=lambda axis: others[axis])
    kept = {axis: degree for axis, degree in others.items() if axis != widest}
    rest, left = divmod(devices, plan.ici.devices * math.prod(kept.values()))
    return None if left or rest < 1 or others[widest] == 1 else plan.with_ici(**kept, **{widest: rest})
