"""Optimizer state in host memory: it comes to the device for the update, and goes back."""

from asap.levers.lever import PRESENT, Lever, Run, Value
from asap.plans import Plan
from asap.plans.plan import Offload
from asap.stacks.registry import contracts


def _read(plan: Plan) -> str:
    return "host" if "optimizer" in plan.offload else "HBM"


def _values(run: Run) -> tuple[Value, ...]:
    both = contracts()[run.stack].moves_parameters  # ``CPUOffloadPolicy`` of PyTorch
    moved: tuple[Offload, ...] = ("optimizer", "parameters") if both else ("optimizer",)

    def toggled(plan: Plan) -> Plan:
        others = tuple(what for what in plan.offload if what not in moved)
        return plan.model_copy(update={"offload": others if "optimizer" in plan.offload else (*moved, *others)})

    return (PRESENT, Value(toggled))


LEVER = Lever(
    name="optimizer_offload",
    title="optimizer state in host memory",
    changes="time: copies over the host's link, both ways, in every step; HBM: moments; numerics: none",
    known="modelled",
    read=_read,
    values=_values,
)
