"""What Megatron-LM's arguments say, and those of forks and of what runs on its core: model, plan, batch, workload."""

from collections.abc import Iterator, Mapping
from typing import Any, get_args

from asap.core.text import plain
from asap.models import Architecture
from asap.models.workload import GraphModule
from asap.plans.plan import Plan, Remat
from asap.plans.remat import MODULES
from asap.plans.validity import Degrees
from asap.stacks.megatron.architecture import fields_of
from asap.stacks.megatron.degrees import EXPERT, EXPERT_TENSOR, TENSOR, experts_over
from asap.stacks.megatron.releases import rename_fork_options
from asap.stacks.megatron.stages import GRANULARITY, counted_layers, lays_out_stages, words_of
from asap.stacks.reading import field_of
from asap.stacks.registry import spec
from asap.stacks.stack_settings import StackSettings

Settings = Mapping[str, object]


def prepared(settings: Settings, _: int | None = None) -> Settings:
    """The arguments under Megatron-LM's names, those of its forks and of Megatron-DeepSpeed among them."""
    return rename_fork_options(settings if isinstance(settings, StackSettings) else StackSettings(settings, ""))


def model_of(settings: StackSettings) -> tuple[dict[str, Any], tuple[str, ...]]:
    """Fields of the model and notes; none where its layers are not said."""
    return fields_of(settings) if "num_layers" in settings else ({}, ())


def plan_fields(
    settings: StackSettings, plan: Plan | None, model: Architecture | None, batch: int | None, framework: str
) -> dict[str, Any]:
    """Fields of the workload."""
    layers, table = model.layers if model else None, spec("megatron")
    if framework == CORE and settings.flag("deepspeed"):
        framework = DEEPSPEED
    # Megatron-LM's own defaults (arguments.py), which what builds on its core need not have
    said = {field: field_of(table, field, settings) for field in ("gradient_precision", "expert_dispatcher")}
    usual = {"gradient_precision": settings.flag("bf16") and "fp32"}
    usual |= {"expert_dispatcher": "moe_token_dispatcher_type" not in settings and "all_gather"}
    unsaid = {field: value for field, value in usual.items() if framework == CORE and value and said[field] is None}
    unsaid |= {} if settings.whole("num_experts") else {"expert_dispatcher": None}
    old = settings.flag("use_legacy_models") or settings.text("transformer_impl") == "local"
    captured = settings.words("cuda_graph_modules") or settings.words("cuda_graph_scope")
    modules = {module for word in captured for module in word.split(",")}
    by_module = field_of(table, "cuda_graphs", settings) == "module"
    stages = (plan.degree("stage"), plan.pipeline_repeats) if plan else (1, 1)
    laid_out = plan is not None and lays_out_stages(settings, layers, *stages)
    return unsaid | {
        "zero_stage": field_of(table, "zero_stage", settings),
        "sequence_length": settings.count("seq_length"),
        "framework": "Megatron-LM" if old and framework == CORE else framework,
        "graph_modules": tuple(each for each in get_args(GraphModule) if by_module and each in modules),
        "pipelined_layers": counted if (counted := counted_layers(settings, layers)) != layers else None,
        "experts_over": experts_over(settings),
        "laid_out_stages": stages if laid_out else None,
    }


def notes_on(settings: StackSettings, plan: Plan | None, layers: int | None) -> Iterator[str]:
    """What of the arguments the plan says otherwise, or no prediction uses."""
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
    unknown = [plain(module, 40) for module in words_of(settings.get("recompute_modules")) if module not in MODULES]
    if unknown and settings.text(GRANULARITY) == "selective":
        taken = plan.remat.value if plan.remat else "unknown"
        yield f"recompute_modules {', '.join(unknown)}: not modelled; the rest is taken as remat={taken}"


CORE, DEEPSPEED = "Megatron-Core", "Megatron-DeepSpeed"
"""Frameworks that have these arguments, as a workload names them."""
PRECISION = frozenset(("bf16", "fp16", "fp8_format", "fp4_format"))
"""Arguments that decide the precision of matrix products."""
