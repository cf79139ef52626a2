"""A plan in the words of the stack that runs it: what to paste into its launcher or its configuration."""

from collections.abc import Mapping
from typing import Literal

from asap.core.errors import PlanError
from asap.plans.deepspeed import settings as deepspeed
from asap.plans.maxtext.overrides import paste_line, to_overrides
from asap.plans.megatron.arguments import command_line, hydra_overrides, to_arguments
from asap.plans.plan import Plan
from asap.plans.torchtitan import settings as torchtitan

Stack = Literal["maxtext", "megatron", "nemo", "bridge", "torchtitan", "deepspeed"]

TITLES: dict[Stack, str] = {
    "maxtext": "MaxText overrides",
    "megatron": "Megatron-LM arguments",
    "nemo": "NeMo overrides",
    "bridge": "Megatron-Bridge overrides",
    "torchtitan": "torchtitan settings",
    "deepspeed": "DeepSpeed settings",
}
_STACKS: dict[str, Stack] = {
    "megatron-core": "megatron",
    "megatron-lm": "megatron",
    "megatron-deepspeed": "megatron",
    "nemo": "nemo",
    "megatron-bridge": "bridge",
    "torchtitan": "torchtitan",
    "deepspeed": "deepspeed",
}


def stack_of(framework: str | None) -> Stack:
    """The stack whose words a record's framework takes; MaxText's for any other."""
    return _STACKS.get((framework or "").casefold(), "maxtext")


def launch_lines(
    plan: Plan,
    stack: Stack,
    current: Mapping[str, object] | None,
    *,
    global_batch: int | None = None,
    layers: int | None = None,
    topology: tuple[int, ...] | None = None,
) -> str:
    """What to change for a stack to run a plan.

    Args:
        plan: what to run.
        stack: whose words to use.
        current: its settings as they are; ``None`` where there is no configuration to change.
        global_batch: sequences in a step.
        layers: decoder layers.
        topology: of a slice of TPUs.

    Raises:
        PlanError: the stack cannot express the plan.
    """
    if stack == "maxtext":
        return paste_line(to_overrides(plan, current, global_batch=global_batch, layers=layers, topology=topology))
    current = current or {}
    if stack == "torchtitan":
        return torchtitan.toml_lines(torchtitan.to_settings(plan, current, global_batch=global_batch, layers=layers))
    if stack == "deepspeed":
        return deepspeed.json_text(deepspeed.to_settings(plan, current, global_batch=global_batch))
    arguments = to_arguments(plan, current, global_batch=global_batch, layers=layers)
    if stack == "megatron":
        return command_line(arguments)
    return hydra_overrides(arguments, "NeMo" if stack == "nemo" else "Megatron-Bridge")


def can_say(
    plan: Plan, stack: Stack, current: Mapping[str, object], global_batch: int | None = None, layers: int | None = None
) -> bool:
    """Whether a stack other than MaxText has words for a plan."""
    try:
        launch_lines(plan, stack, current, global_batch=global_batch, layers=layers)
    except PlanError:
        return stack == "maxtext"
    return True
