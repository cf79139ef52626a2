"""The training state in bf16: less HBM and less traffic of the optimizer, and another training."""

from typing import Literal, get_args

from asap.levers.lever import PRESENT, Lever, Run, Value
from asap.plans import Plan
from asap.plans.degrees import workload_under

StateSetting = Literal["first_moment", "second_moment", "weight_precision"]
STATE_SETTINGS: tuple[StateSetting, ...] = get_args(StateSetting)


def _lever(name: StateSetting, title: str, changes: str) -> Lever:
    def read(plan: Plan) -> str:
        return getattr(plan, name) or "default"

    def values(run: Run) -> tuple[Value, ...]:
        return (PRESENT,) if _is_narrow(name, run) else (PRESENT, Value(narrowed))

    def narrowed(plan: Plan) -> Plan:
        return plan.model_copy(update={name: "bf16"})

    return Lever(
        name=name, title=title, changes=changes, known="modelled", read=read, values=values,
        on_request=True,
    )  # fmt: skip


def _is_narrow(name: StateSetting, run: Run) -> bool:
    """Whether it is in bf16 already; where JAX keeps weights in bf16, it keeps all of the state so."""
    now = workload_under(run.plan, run.workload)
    of = {"first_moment": now.first_moment_precision, "second_moment": now.second_moment_precision}
    return "bf16" in (of.get(name), now.weight_precision)


LEVERS: tuple[Lever, ...] = (
    _lever(
        "first_moment",
        "first moment in bf16",
        "time: a little less optimizer traffic; HBM: 2 bytes a parameter; numerics: the optimizer's",
    ),
    _lever(
        "second_moment",
        "second moment in bf16",
        "time: a little less optimizer traffic; HBM: 2 bytes a parameter; numerics: the optimizer's",
    ),
    _lever(
        "weight_precision",
        "weights in bf16",
        "time: less optimizer traffic; HBM: half of parameters, gradients and moments; numerics: all updates",
    ),
)
