"""Weights in bf16: parameters, gradients and moments take half the bytes, and training is another."""

from asap.levers.lever import PRESENT, Lever, Run, Value
from asap.plans import Plan


def _read(plan: Plan) -> str:
    return plan.weight_precision or "default"


def _values(run: Run) -> tuple[Value, ...]:
    narrow = "bf16" in (run.plan.weight_precision, run.workload.weight_precision)
    other = Value(lambda plan: plan.model_copy(update={"weight_precision": "bf16"}))
    return (PRESENT,) if narrow else (PRESENT, other)


LEVER = Lever(
    name="weight_precision",
    title="weights in bf16",
    changes="time: less optimizer traffic; HBM: half of parameters, gradients and moments; numerics: all updates",
    known="modelled",
    said_by={"maxtext": "weight_dtype", "torchtitan": "training.dtype"},
    read=_read,
    values=_values,
    on_request=True,
)
