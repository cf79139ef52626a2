"""Plans with the micro-batch of another: whoever launches PyTorch stacks keeps it, and accumulates more or fewer."""

from collections.abc import Iterable, Iterator

from asap.plans.plan import Plan


def with_micro_batch_of(incumbent: Plan, plans: Iterable[Plan], global_batch: int) -> Iterator[Plan]:
    """Each plan with as many microbatches as its groups need for the incumbent's micro-batch; others are left out.

    Args:
        incumbent: the plan that runs, with a known number of microbatches.
        plans: for the same batch.
        global_batch: sequences in a step.
    """
    each = global_batch // (incumbent.batch_shards * (incumbent.microbatches or 1))
    for plan in plans:
        count, rest = divmod(global_batch, plan.batch_shards * each) if each else (0, 1)
        if count and not rest:
            yield plan.model_copy(update={"microbatches": count})


def keeping_micro_batch(plan: Plan, incumbent: Plan, global_batch: int) -> Plan:
    """A plan with the incumbent's micro-batch; unchanged where the batch does not divide into such."""
    return next(with_micro_batch_of(incumbent, [plan], global_batch), plan)
