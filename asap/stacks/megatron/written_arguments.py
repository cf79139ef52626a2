"""A plan as arguments of Megatron-LM that have to change."""

from collections.abc import Mapping

from asap.core.errors import PlanError
from asap.plans.degrees import FOLDED, degree
from asap.plans.partial_remat import RecomputedLayers, RecomputedModules
from asap.plans.plan import Plan, Remat
from asap.stacks.megatron.arguments import (
    CONTEXT,
    EXPERT,
    EXPERT_TENSOR,
    FSDP,
    FULL_SHARDING,
    GLOBAL_BATCH,
    GRANULARITY,
    GROUPS,
    INSTANCES,
    LAYERS_EACH,
    METHOD,
    MICRO_BATCH,
    MODULES,
    MOMENTS,
    OFFLOAD,
    OPTIMIZER,
    PIPELINE,
    RECOMPUTED_LAYERS,
    STRATEGY,
    TENSOR,
    VIRTUAL,
    experts_over,
    is_fully_sharded,
    is_true,
    remat_of,
)
from asap.stacks.megatron.forks import in_words_of_deepspeed, in_words_of_swift, is_megatron_deepspeed, is_of_swift
from asap.stacks.megatron.requirements import (
    PRECISION_AWARE,
    checkpoints,
    counted_layers,
    has_biased_experts,
    invalidated,
    still_counted,
)
from asap.stacks.megatron.stages import LAYER_IDS, LAYOUT, layers_at_ends, repeats_of
from asap.stacks.megatron.versions import in_words_of_version, lacks

_SEQUENCE = "sequence_parallel"


def to_arguments(
    plan: Plan, current: Mapping[str, object], *, global_batch: int | None = None, layers: int | None = None
) -> dict[str, str | bool]:
    """Arguments that have to change for Megatron-LM to run a plan; ``False`` is an argument to leave out.

    Args:
        plan: what to run.
        current: the arguments as they are.
        global_batch: sequences in a step; gives ``micro_batch_size`` where the plan sets microbatches.
        layers: decoder layers.

    Raises:
        PlanError: Megatron-LM cannot express the plan.
    """
    of_deepspeed = is_megatron_deepspeed(current)
    wanted: dict[str, str | bool] = {
        TENSOR: str(plan.degree("model")),
        PIPELINE: str(plan.degree("stage")),
        CONTEXT: str(plan.degree("seq")),
        **_expert(plan, current),
        **_sharding(plan, current),
        **_batch(plan, global_batch, current),
        **_stages(plan, current, layers),
        **({} if still_counted(plan, current, layers) else layers_at_ends(plan, current, layers)),
        **_recompute(plan, current, layers),
        OFFLOAD: "optimizer" in plan.offload,
        **_training_state(plan, of_deepspeed),
    }
    if {"parameters", "activations"} & set(plan.offload) and not of_deepspeed:
        raise PlanError("Megatron-LM offloads the optimizer only, as far as a plan can say it")
    if plan.degree("model") > 1 and plan.degree("expert") > 1:
        wanted[_SEQUENCE] = True  # Megatron-Core refuses tensor and expert parallelism without it
    changed = {key: value for key, value in wanted.items() if not _same(current.get(key), value, key)}
    changed |= invalidated(plan, changed, wanted, current, layers)
    if of_deepspeed:
        changed = in_words_of_deepspeed(plan, current, changed)
    if is_of_swift(current):
        return in_words_of_swift(changed)
    changed |= {} if of_deepspeed else checkpoints(wanted, current)
    return in_words_of_version(changed, current)


def command_line(arguments: Mapping[str, str | bool], joint: str = "-") -> str:
    """``--tensor-model-parallel-size 4 --sequence-parallel``; what is to be left out comes last."""
    words = []
    for key, value in arguments.items():
        name = f"--{key.replace('_', joint)}"
        words += [] if value is False else [name] if value is True else [f"{name} {value}"]
    dropped = [f"--{key.replace('_', joint)}" for key, value in arguments.items() if value is False]
    return " ".join(words) + (f"{' ' if words else ''}# without {' '.join(dropped)}" if dropped else "")


def _expert(plan: Plan, current: Mapping[str, object]) -> dict[str, str | bool]:
    """Expert degrees; experts that were whole beside tensor or context parallelism stay so."""
    expert, tensor = plan.degree("expert"), plan.degree("model")
    over = experts_over(current)
    if "seq" in over:
        expert *= plan.degree("seq")
    if "model" in over and (FOLDED in current or (tensor > 1 and has_biased_experts(current))):
        return {EXPERT: str(expert * tensor), EXPERT_TENSOR: "1"}
    if EXPERT_TENSOR in current and str(current[EXPERT_TENSOR]) != str(current.get(TENSOR, 1)):
        kept = degree(current, EXPERT_TENSOR)
        if (expert * tensor) % kept == 0:
            return {EXPERT: str(expert * tensor // kept)}
    if EXPERT_TENSOR in current:
        return {EXPERT: str(expert), EXPERT_TENSOR: str(tensor)}
    return {EXPERT: str(expert)}


def _sharding(plan: Plan, current: Mapping[str, object]) -> dict[str, str | bool]:
    sharded = plan.degree("data") > 1
    if not sharded and not is_fully_sharded(current):
        return {}
    if not sharded:
        return {FSDP: False, "use_torch_fsdp2": False}
    if is_true(current.get("use_torch_fsdp2")):
        return {INSTANCES: str(plan.degree("replica"))}
    wanted: dict[str, str | bool] = {FSDP: True, STRATEGY: FULL_SHARDING, "use_distributed_optimizer": True}
    return wanted | {INSTANCES: str(plan.degree("replica"))}


def _batch(plan: Plan, global_batch: int | None, current: Mapping[str, object]) -> dict[str, str | bool]:
    """Micro-batch, and the batch where the configuration has another or, saying none, takes one microbatch."""
    if plan.microbatches is None or global_batch is None:
        return {}
    each, rest = divmod(global_batch, plan.batch_shards * plan.microbatches)
    if rest or not each:
        shards = f"{plan.batch_shards} data-parallel groups of {plan.microbatches} microbatches"
        raise PlanError(f"{global_batch} sequences do not divide into {shards}")
    says_it = GLOBAL_BATCH in current or (MICRO_BATCH in current and plan.microbatches > 1)
    return {MICRO_BATCH: str(each), **({GLOBAL_BATCH: str(global_batch)} if plan.global_batch or says_it else {})}


def _stages(plan: Plan, current: Mapping[str, object], layers: int | None) -> dict[str, str | bool]:
    stages, repeats = plan.degree("stage"), plan.pipeline_repeats if plan.degree("stage") > 1 else 1
    if repeats > 1 and plan.microbatches and plan.microbatches % stages and not set(GROUPS) & set(current):
        taken = f"an interleaved pipeline of {stages} stages takes as many microbatches at once"
        raise PlanError(f"{taken}: {plan.microbatches} are no multiple")
    if current.get(LAYOUT) is not None:
        kept = stages == degree(current, PIPELINE) and repeats == repeats_of(current[LAYOUT], stages)
        return {} if kept else {LAYOUT: False, VIRTUAL: str(repeats) if repeats > 1 else False}
    if (LAYERS_EACH in current or lacks(current, VIRTUAL)) and layers is not None:
        layers = counted_layers(current, layers) if still_counted(plan, current, layers) else layers
        each, rest = divmod(layers or 0, stages * repeats)
        if rest:
            raise PlanError(f"{layers} layers do not divide into {stages} stages x {repeats}")
        return {LAYERS_EACH: str(each) if repeats > 1 else False}
    if repeats == 1 and str(current.get(VIRTUAL)) == "1":
        return {}
    return {VIRTUAL: str(repeats) if repeats > 1 else False}


def _recompute(plan: Plan, current: Mapping[str, object], layers: int | None) -> dict[str, str | bool]:
    chunks = plan.degree("stage") * (plan.pipeline_repeats if plan.degree("stage") > 1 else 1)
    if plan.remat is None or plan.remat == remat_of(current, layers, chunks):
        return {}
    plain_flags: dict[str, str | bool] = {"recompute_activations": False, LAYER_IDS: False}
    rest: dict[str, str | bool] = {METHOD: False, RECOMPUTED_LAYERS: False, MODULES: False}
    if plan.remat is Remat.FULL:
        return plain_flags | {GRANULARITY: "full", METHOD: "uniform", RECOMPUTED_LAYERS: "1", MODULES: False}
    if plan.remat is Remat.SELECTIVE:
        return plain_flags | rest | {GRANULARITY: "selective"}
    if plan.remat is Remat.NONE:
        return plain_flags | rest | {GRANULARITY: False}
    if isinstance(plan.remat, RecomputedModules):
        return {GRANULARITY: "selective"} | plain_flags | rest | {MODULES: " ".join(plan.remat.modules)}
    if isinstance(plan.remat, RecomputedLayers):
        count = str(_recomputed_layers(plan.remat, layers, chunks))
        return plain_flags | {GRANULARITY: "full", METHOD: "block", RECOMPUTED_LAYERS: count, MODULES: False}
    hint = "full, selective or none; modules, as in selective.layernorm+moe_act; or a share of the layers: full.1/2"
    raise PlanError(f"Megatron-LM has no recomputation like remat={plan.remat.value}", hint=hint)


def _recomputed_layers(policy: RecomputedLayers, layers: int | None, chunks: int) -> int:
    """Layers of each virtual stage that are recomputed."""
    if layers is None:
        raise PlanError(f"remat={policy.value}: how many layers that is of each stage is not known")
    count = policy.share * layers / chunks
    if count.denominator > 1:
        raise PlanError(f"remat={policy.value}: no whole number of the {layers} layers over {chunks} virtual stages")
    return int(count)


def _training_state(plan: Plan, of_deepspeed: bool) -> dict[str, str | bool]:
    moments = {key: precision for name, key in MOMENTS.items() if (precision := getattr(plan, name)) is not None}
    aware = moments or ("optimizer" in plan.offload and not of_deepspeed)
    wanted: dict[str, str | bool] = {PRECISION_AWARE: True, **moments} if aware else {}
    return wanted | ({OPTIMIZER: plan.optimizer.removesuffix("w")} if plan.optimizer else {})


def _same(value: object, wanted: str | bool, key: str) -> bool:
    if isinstance(wanted, bool):
        present = value is not None and str(value).casefold() not in ("false", "none", "")
        return present == wanted
    default = {INSTANCES: "1"}.get(
        key, "1" if key.endswith("_size") and key not in (MICRO_BATCH, EXPERT_TENSOR) else None
    )
    return str(default if value is None else value) == wanted
