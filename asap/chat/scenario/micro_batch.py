"""A micro-batch that is larger than what a data rank has in a step: it needs a larger global batch."""

from asap.chat.understanding.quantities.changes import Change
from asap.chat.understanding.quantities.things import Thing, To
from asap.core.units import counted
from asap.plans import Plan


def with_batch_of_micro_batch(change: Change, plan: Plan, batch: int | None, notes: list[str]) -> Change:
    """The change with the global batch that its micro-batch needs, which is noted; as it is where it fits."""
    size = change.get("micro_batch_size")
    if size is None or batch is None or change.get("batch") is not None:
        return change
    held = batch / plan.batch_shards
    wanted = size.of(round(held / (plan.microbatches or 1))) or 1
    if wanted <= held:
        return change
    needed = wanted * plan.batch_shards
    notes.append(
        f"a data rank has {counted(round(held), 'sequence')} of a step, so a micro-batch of {wanted} needs a global"
        f" batch of {needed}; with fewer data ranks it would not"
    )
    counts: dict[Thing, To] = {one: to for one, to in change.counts if one != "micro_batch_size"}
    counts["batch"] = To(value=needed)
    if (plan.microbatches or 1) > 1:
        counts["microbatches"] = To(value=1)
    return change.model_copy(update={"counts": tuple(sorted(counts.items(), key=lambda pair: pair[0]))})
