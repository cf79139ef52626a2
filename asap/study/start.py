"""A plan to start from, where nothing on record says how a model is laid out."""

from asap.core.errors import PlanError
from asap.experiments import Experiment
from asap.hardware import Slice
from asap.plans import Plan
from asap.plans.launchers import stack_of
from asap.plans.validity import Constraints, violations

ASSUMED = "assumed, as a start"
_SHARDING = ("maxtext", "torchtitan")
"""Stacks that shard parameters by default; what names no stack is taken for MaxText's."""


def is_start(experiment: Experiment) -> bool:
    """Whether the plan of a record is such a one, which no launcher has been told."""
    return experiment.provenance.get("plan") == ASSUMED


def with_start(experiment: Experiment, hardware: Slice | None, constraints: Constraints) -> Experiment:
    """The record with FSDP over all chips and full rematerialisation, where it has a model, a batch and hardware alone,
    such as one of a ``config.json``; else as it is. A step that was measured is of a plan that has to be given."""
    model, workload = experiment.model, experiment.workload
    if experiment.plan is not None or experiment.hyperparameters or experiment.measured is not None:
        return experiment
    if stack_of(workload.framework) not in _SHARDING:
        return experiment
    if hardware is None or model is None or model.missing() or not workload.tokens:
        return experiment
    plan = _fully_sharded(hardware)
    if plan is None or violations(plan, constraints):
        return experiment
    notes = [f"no plan is on record: {plan} is taken as the start; --plan says another"]
    if workload.framework is None:
        notes.append("what trains it is not on record: add workload.framework=MaxText or torchtitan")
    return experiment.model_copy(
        update={
            "plan": plan,
            "provenance": experiment.provenance | {"plan": ASSUMED},
            "notes": (*experiment.notes, *notes),
        }
    )


def _fully_sharded(hardware: Slice) -> Plan | None:
    slices = f"dcn.replica={hardware.slices}" if hardware.chip.torus is not None and hardware.slices > 1 else ""
    devices = hardware.devices_per_slice if slices else hardware.devices
    try:
        return Plan.parse(f"data={devices} {slices} microbatches=1 remat=full")
    except PlanError:
        return None
