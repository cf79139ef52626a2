"""A plan of which some degrees were named: what runs now if it has them, else data parallelism over the rest."""

from asap.plans import Plan
from asap.plans.axes import MEANINGS, Axis
from asap.prediction.predict_study import usual_axes
from asap.study.study import Study


def filled(study: Study, plan: Plan) -> Plan:
    """The plan over all devices of a slice: on the mesh of what runs, or with the run's kind of data parallelism."""
    named, devices = plan.ici.devices, study.constraints.devices_per_slice
    if devices is None or plan.ici.data > 1 or plan.ici.replica > 1 or named >= devices or devices % named:
        return plan
    axes: list[Axis] = [axis for axis in MEANINGS if plan.degree(axis) > 1]
    if study.plan is not None and axes and all(study.plan.degree(axis) == plan.degree(axis) for axis in axes):
        return plan.model_copy(update={"ici": study.plan.ici})
    sharded = "data" in usual_axes(study)
    return plan.with_ici(**{"data" if sharded else "replica": devices // named})
