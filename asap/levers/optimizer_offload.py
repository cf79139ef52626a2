"""Optimizer state in host memory: it comes to the device for the update, and goes back."""

from asap.levers.lever import PRESENT, Lever, Run, Value
from asap.plans import Plan
from asap.plans.plan import Offload
from asap.stacks.launchers import Stack

_TOGETHER: tuple[Stack, ...] = ("torchtitan", "axolotl", "accelerate", "fsdp")
"""Stacks whose FSDP offloads parameters with the optimizer, by one setting (``CPUOffloadPolicy`` of PyTorch)."""


def _read(plan: Plan) -> str:
    return "host" if "optimizer" in plan.offload else "HBM"


def _values(run: Run) -> tuple[Value, ...]:
    moved: tuple[Offload, ...] = ("optimizer", "parameters") if run.stack in _TOGETHER else ("optimizer",)

    def toggled(plan: Plan) -> Plan:
        others = tuple(what for what in plan.offload if what not in moved)
        return plan.model_copy(update={"offload": others if "optimizer" in plan.offload else (*moved, *others)})

    return (PRESENT, Value(toggled))


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
        "torchtitan": "training.enable_cpu_offload",
        "axolotl": "fsdp_config.offload_params",
        "accelerate": "fsdp_config.fsdp_offload_params",
        "fsdp": "cpu_offload",
    },
    read=_read,
    values=_values,
)
