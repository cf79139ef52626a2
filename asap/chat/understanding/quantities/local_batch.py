"""What a local batch is of: a data rank; in MaxText a device."""

from asap.plans import Plan
from asap.plans.launchers import stack_of
from asap.study.study import Study


def local_batches(study: Study, plan: Plan) -> int:
    """Local batches of a global batch: data ranks times the microbatches of each; in MaxText devices."""
    if stack_of(study.experiment.workload.framework) == "maxtext":
        return plan.devices
    return plan.batch_shards * (plan.microbatches or 1)
