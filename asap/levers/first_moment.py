"""Adam's first moment in bf16: two bytes a parameter less, and another training."""

from asap.levers.lever import PRESENT, Lever, Run, Value
from asap.plans import Plan


def _read(plan: Plan) -> str:
    return plan.first_moment or "default"


def _values(run: Run) -> tuple[Value, ...]:
    narrow = "bf16" in (run.plan.first_moment, run.workload.first_moment_precision, run.workload.weight_precision)
    other = Value(lambda plan: plan.model_copy(update={"first_moment": "bf16"}))
    return (PRESENT,) if narrow else (PRESENT, other)


LEVER = Lever(
    name="first_moment",
    title="first moment in bf16",
    changes="time: a little less optimizer traffic; HBM: 2 bytes a parameter; numerics: the optimizer's",
    known="modelled",
    said_by={
        "maxtext": "mu_dtype",
        "megatron": "--exp-avg-dtype",
        "bridge": "optimizer.exp_avg_dtype",
    },
    read=_read,
    values=_values,
    on_request=True,
)
