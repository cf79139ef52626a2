"""The loss in parts: logits of all tokens at once are the largest tensor of models with a large vocabulary."""

from asap.levers.lever import PRESENT, Lever, Run, Value
from asap.plans import Plan

TRIED = (4, 16)


def _read(plan: Plan) -> str:
    return str(plan.loss_chunks or "default")


def _values(run: Run) -> tuple[Value, ...]:
    now, tokens = run.plan.loss_chunks or run.workload.loss_chunks or 1, run.workload.tokens or 0
    return (PRESENT, *(_parts(count) for count in TRIED if count > now and tokens % count == 0))


def _parts(count: int) -> Value:
    return Value(lambda plan: plan.model_copy(update={"loss_chunks": count}))


LEVER = Lever(
    name="loss_chunks",
    title="loss in parts",
    changes="time: little; HBM: logits, divided by the parts; numerics: none but the order of a sum",
    known="modelled",
    read=_read,
    values=_values,
)
