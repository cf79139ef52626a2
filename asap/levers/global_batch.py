"""A larger batch: weights are gathered and gradients reduced for more tokens, and the same tokens take fewer steps."""

from asap.levers.lever import PRESENT, Lever, Run, Value
from asap.plans import Plan

TIMES = (2, 4, 8)


def _read(plan: Plan) -> str:
    return str(plan.global_batch or "default")


def _values(run: Run) -> tuple[Value, ...]:
    now = run.plan.global_batch or run.workload.global_batch
    return (PRESENT, *(_batch(now * times) for times in TIMES)) if now else (PRESENT,)


def _batch(sequences: int) -> Value:
    return Value(lambda plan: plan.model_copy(update={"global_batch": sequences}))


LEVER = Lever(
    name="global_batch",
    title="larger batch",
    changes="time: less communication per token; HBM: activations; numerics: fewer, larger steps",
    known="modelled",
    read=_read,
    values=_values,
    on_request=True,
)
