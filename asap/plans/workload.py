"""The workload of a step under a plan: what the plan says of loss and training state replaces what is on record."""

from asap.models import Workload
from asap.plans.plan import Plan


def workload_under(plan: Plan, workload: Workload) -> Workload:
    """The workload with the plan's parts of the loss and precisions of the training state, where it says them."""
    said = {
        "loss_chunks": plan.loss_chunks,
        "first_moment_precision": plan.first_moment,
        "weight_precision": plan.weight_precision,
    }
    changed = {field: value for field, value in said.items() if value is not None}
    return workload.model_copy(update=changed) if changed else workload
