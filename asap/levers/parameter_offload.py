"""Parameters in host memory: only bringing them back is tried, as a step has all of them on the device at its peak.

Source: MaxText's train.py with NNX modules, and the compiler's memory plan (docs/concepts/advice.md).
"""

from asap.levers.lever import PRESENT, Lever, Run, Value
from asap.plans import Plan


def _read(plan: Plan) -> str:
    return "host" if "parameters" in plan.offload else "HBM"


def _values(run: Run) -> tuple[Value, ...]:
    return (PRESENT, Value(_in_hbm)) if "parameters" in run.plan.offload else (PRESENT,)


def _in_hbm(plan: Plan) -> Plan:
    return plan.model_copy(update={"offload": tuple(what for what in plan.offload if what != "parameters")})


LEVER = Lever(
    name="parameter_offload",
    title="parameters in host memory",
    changes="time: copies over the host's link, both ways, in every step; HBM: none at the peak; numerics: none",
    known="modelled",
    read=_read,
    values=_values,
)
