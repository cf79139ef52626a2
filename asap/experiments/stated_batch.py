"""Another global batch or another plan than the one on record: which number of microbatches then runs."""

from asap.core.errors import ConfigError
from asap.core.text import plain
from asap.experiments.experiment import Experiment
from asap.plans import Plan
from asap.plans.degrees import with_micro_batch_of
from asap.stacks.launchers import stack_of


def completed_plan(stated: Plan, experiment: Experiment) -> Plan:
    """A plan with the settings that it leaves out as they are on record, and with the micro-batch of the record where
    the stack sets its size; where the batch does not divide into such, the number of microbatches is unknown."""
    before, batch = experiment.plan, experiment.workload.global_batch
    whole = stated.completed_by(before).model_copy(update={"dcn": stated.dcn})
    said = "microbatches" in stated.model_fields_set or stack_of(experiment.workload.framework) == "maxtext"
    if said or before is None or not (before.microbatches and batch):
        return whole
    return next(with_micro_batch_of(before, [whole], batch), whole.model_copy(update={"microbatches": None}))


def plan_under_batch(experiment: Experiment, batch: int) -> Plan | None:
    """The plan on record under another batch: stacks that set the size of a micro-batch keep it, and run more of them.

    Raises:
        ConfigError: the batch does not divide into micro-batches of that size.
    """
    plan, before = experiment.plan, experiment.workload.global_batch
    if plan is None or not (plan.microbatches and before) or before == batch:
        return plan
    if stack_of(experiment.workload.framework) == "maxtext":
        return plan
    size, broken = divmod(before, plan.batch_shards * plan.microbatches)
    if broken:
        return plan
    count, rest = divmod(batch, plan.batch_shards * size)
    if rest or not count:
        parts = f"{plan.batch_shards} data-parallel groups x {size}, the micro-batch on record"
        raise ConfigError(
            f"a batch of {batch} is not a multiple of {parts}", where=plain(experiment.id, 60),
            hint="say another batch, or the micro-batch in the launcher's words",
        )  # fmt: skip
    return plan.model_copy(update={"microbatches": count})
