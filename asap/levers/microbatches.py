"""Microbatches: parts of the batch that a device works on one after the other, in a pipeline or by accumulation."""

from asap.levers.lever import PRESENT, Lever, Run, Value
from asap.plans import Plan
from asap.stacks.registry import contracts

MOST = 32
LARGEST = 8
"""Sequences of a microbatch that are tried: published runs of PyTorch stacks use 1 to 8."""


def _read(plan: Plan) -> str:
    return str(plan.microbatches or 1)


def _values(run: Run) -> tuple[Value, ...]:
    batch, now = run.workload.global_batch, run.plan.microbatches
    if batch is None:
        return (PRESENT,)
    if not contracts()[run.stack].sets_micro_batch:
        return (PRESENT, *(_count(count) for count in _counts(run.plan, batch) if count != (now or 1)))
    if now is None:
        return (PRESENT,)
    each = max(batch // (run.plan.batch_shards * now), 1)
    return tuple(Value(sequences=size) for size in [each, *(s for s in (1, 2, 4, LARGEST) if s != each)])


def _counts(plan: Plan, batch: int) -> list[int]:
    """Powers of two; in a pipeline, multiples of its stages, as MaxText wants them."""
    least = plan.degree("stage")
    return [
        least * 2**power for power in range(MOST.bit_length()) if 2**power <= MOST and batch % (least * 2**power) == 0
    ]


def _count(count: int) -> Value:
    return Value(lambda plan: plan.model_copy(update={"microbatches": count}))


LEVER = Lever(
    name="microbatches",
    title="microbatches",
    changes="time: sharded weights are gathered for each, and a pipeline's bubble; HBM: activations; numerics: none",
    known="modelled",
    read=_read,
    values=_values,
)
