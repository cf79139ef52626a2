"""The workload of a step under a plan: what the plan says of batch, loss and training state replaces the record."""

from asap.models import Workload
from asap.plans.plan import OF_WORKLOAD, Plan

_FIELDS = {"first_moment": "first_moment_precision", "second_moment": "second_moment_precision"}
"""Fields of the workload that have another name than those of the plan."""


def field_of(name: str) -> str:
    """The field of the workload that a plan's setting of this name replaces."""
    return _FIELDS.get(name, name)


def workload_under(plan: Plan, workload: Workload) -> Workload:
    """The workload with the batch, the parts of the loss and the training state of a plan, where it says them."""
    said = {field_of(name): getattr(plan, name) for name in OF_WORKLOAD}
    changed = {field: value for field, value in said.items() if value is not None}
    return workload.model_copy(update=changed) if changed else workload
