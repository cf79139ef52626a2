"""Optimizer state in host memory: it comes to the device for the update, and goes back."""

from asap.levers.lever import PRESENT, Lever, Run, Value
from asap.plans import Plan


def _read(plan: Plan) -> str:
    return "host" if "optimizer" in plan.offload else "HBM"


def _values(run: Run) -> tuple[Value, ...]:
    del run
    return (PRESENT, Value(_toggled))


def _toggled(plan: Plan) -> Plan:
    others = tuple(what for what in plan.offload if what != "optimizer")
    return plan.model_copy(update={"offload": others if "optimizer" in plan.offload else ("optimizer", *others)})


LEVER = Lever(
    name="optimizer_offload",
    title="optimizer state in host memory",
    changes="time: copies over the host's link, both ways, in every step; HBM: moments; numerics: none",
    known="modelled",
    said_by={
        "maxtext": "optimizer_memory_host_offload",
        "megatron": "--optimizer-cpu-offload",
        "bridge": "optimizer.optimizer_cpu_offload",
        "deepspeed": "zero_optimization.offload_optimizer.device",
    },
    read=_read,
    values=_values,
)
