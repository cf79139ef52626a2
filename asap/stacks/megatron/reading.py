"""What Megatron-LM's arguments say, and those of forks and of what runs on its core: model, plan, batch, workload."""

from collections.abc import Iterator, Mapping
from typing import Any

from asap.core.text import plain
from asap.core.units import counted
from asap.models import Architecture
from asap.plans.plan import Plan, Remat
from asap.plans.remat import MODULES
from asap.plans.validity import Degrees
from asap.stacks.megatron.architecture import fields_of
from asap.stacks.megatron.degrees import (
    EXPERT,
    EXPERT_TENSOR,
    INSTANCES,
    TENSOR,
    batch_of,
    experts_over,
    from_arguments,
    is_fully_sharded,
)
from asap.stacks.megatron.releases import of_deepspeed, of_forks
from asap.stacks.megatron.stages import GRANULARITY, LAYER_IDS, lays_out_stages, numbered_layers, words_of
from asap.stacks.megatron.workload import CORE, DEEPSPEED, workload_of
from asap.stacks.stack_settings import StackSettings

Settings = Mapping[str, object]


def prepared(settings: Settings, _: int | None = None) -> Settings:
    """The arguments under Megatron-LM's names, those of its forks and of Megatron-DeepSpeed among them."""
    found = of_forks(_typed(settings))
    return of_deepspeed(found) if found.flag("deepspeed") else found


def model_of(settings: StackSettings) -> tuple[dict[str, Any], tuple[str, ...]]:
    """Fields of the model and notes; none where its layers are not said."""
    return fields_of(settings) if "num_layers" in settings else ({}, ())


def plan_of(settings: Settings, devices: int, layers: int | None = None) -> Plan:
    """The plan that arguments say, some of which may be written as off; raises like :func:`from_arguments`."""
    said = {key: value for key, value in settings.items() if str(value).casefold() != "false"}
    return from_arguments(said, devices, layers, global_batch=batch_of(said, devices))


def global_batch(settings: Settings, plan: Plan | None) -> int | None:
    """Sequences in a step."""
    return batch_of(settings, plan.devices if plan else None)


def of_plan(
    settings: StackSettings, plan: Plan | None, model: Architecture | None, batch: int | None, framework: str
) -> dict[str, Any]:
    """Fields of the workload."""
    layers = model.layers if model else None
    deepspeed = framework == CORE and settings.flag("deepspeed")
    found = workload_of(settings, DEEPSPEED if deepspeed else framework, batch, layers)
    stages = (plan.degree("stage"), plan.pipeline_repeats) if plan else (1, 1)
    laid_out = plan is not None and lays_out_stages(settings, layers, *stages)
    return found | {"laid_out_stages": stages if laid_out else None}


def notes_on(settings: StackSettings, plan: Plan | None, layers: int | None) -> Iterator[str]:
    """What of the arguments the plan says otherwise, or no prediction uses."""
    if str(settings.get(INSTANCES, 1)) != "1" and not is_fully_sharded(settings):
        likely = "more HBM and a shorter step"
        yield f"the prediction does not use {INSTANCES}={plain(settings[INSTANCES], 40)} (likely {likely})"
    if plan is None:
        return
    tensor, experts = settings.count(TENSOR) or 1, settings.count(EXPERT) or 1
    split = settings.count(EXPERT_TENSOR, tensor) or tensor
    if folded := tuple(axis for axis in experts_over(settings) if plan.degree(axis) > 1):
        yield f"experts lie over {settings[EXPERT]} devices, here {Degrees.of(plan, folded).expert_axes}"
    if 1 < split < tensor and experts > 1:
        yield f"{EXPERT_TENSOR}={split}: experts are taken as split {tensor} ways, as attention is"
    if split > tensor and plan.degree("expert") > 1:
        taken = plan.degree("expert")
        yield f"{EXPERT_TENSOR}={split}: {experts} x {split} devices are taken as {taken} x {tensor}"
    if layers is None and plan.remat is Remat.FULL and settings.text("recompute_method") == "block":
        yield "recompute_method block: all layers are taken as recomputed, as their number is not known"
    if numbered := numbered_layers(settings, layers):
        of_all = counted(layers, "layer") if layers else "layers whose number is not known: all are taken as recomputed"
        share = ", taken as the same share of each stage" if layers and plan.degree("stage") > 1 else ""
        yield f"{LAYER_IDS}: {len(numbered)} of {of_all}{share}"
    if "a2a+p2p" in settings.words("cp_comm_type"):
        yield "cp_comm_type a2a+p2p: taken as a ring over all devices that share a sequence"
    unknown = [plain(module, 40) for module in words_of(settings.get("recompute_modules")) if module not in MODULES]
    if unknown and settings.text(GRANULARITY) == "selective":
        taken = plan.remat.value if plan.remat else "unknown"
        yield f"recompute_modules {', '.join(unknown)}: not modelled; the rest is taken as remat={taken}"


def _typed(settings: Settings) -> StackSettings:
    return settings if isinstance(settings, StackSettings) else StackSettings(settings, "")
