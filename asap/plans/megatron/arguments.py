"""A plan as Megatron-LM's arguments, both ways (``megatron/training/arguments.py``, ModelParallelConfig of its core).

Data parallelism replicates parameters (``replica``) unless Megatron-FSDP or PyTorch's FSDP2 shards them (``data``).
"""

from collections.abc import Mapping

from asap.core.errors import PlanError
from asap.models.workload import FoldedAxis
from asap.plans.degrees import FOLDED, degree, expert_axis, folded_axes, groups_of
from asap.plans.megatron.deepspeed import (
    in_words_of_deepspeed,
    is_megatron_deepspeed,
    offloaded_by_deepspeed,
    stage_of,
)
from asap.plans.megatron.dependents import checkpoints, counted_layers, invalidated
from asap.plans.megatron.pipeline_layout import LAYOUT, repeats_of
from asap.plans.megatron.requirements import PRECISION_AWARE
from asap.plans.megatron.swift import in_words_of_swift, is_of_swift
from asap.plans.megatron.versions import in_words_of_version, lacks
from asap.plans.plan import Mesh, Offload, Plan, Remat

TENSOR, PIPELINE, CONTEXT = "tensor_model_parallel_size", "pipeline_model_parallel_size", "context_parallel_size"
EXPERT, EXPERT_TENSOR = "expert_model_parallel_size", "expert_tensor_parallel_size"
MICRO_BATCH, GLOBAL_BATCH = "micro_batch_size", "global_batch_size"
OPTIMIZER = "optimizer"
MOMENTS = {"first_moment": "exp_avg_dtype", "second_moment": "exp_avg_sq_dtype"}
VIRTUAL = "num_virtual_stages_per_pipeline_rank"
LAYERS_EACH = "num_layers_per_virtual_pipeline_stage"
GROUPS = ("microbatch_group_size_per_vp_stage", "microbatch_group_size_per_virtual_pipeline_stage")
"""How many microbatches an interleaved stage takes at once, by default as many as there are stages."""
FSDP, STRATEGY, INSTANCES = (
    "use_megatron_fsdp",
    "data_parallel_sharding_strategy",
    "num_distributed_optimizer_instances",
)
GRANULARITY, MODULES = "recompute_granularity", "recompute_modules"
METHOD, RECOMPUTED_LAYERS = "recompute_method", "recompute_num_layers"
OFFLOAD = "optimizer_cpu_offload"
_SEQUENCE = "sequence_parallel"
_FULL_SHARDING = "optim_grads_params"


def from_arguments(
    arguments: Mapping[str, object], devices: int, layers: int | None = None, global_batch: int | None = None
) -> Plan:
    """The plan that Megatron-LM makes of its arguments on so many devices.

    Args:
        arguments: by name; what is absent has Megatron-LM's default.
        devices: GPUs of the job, its ``world_size``.
        layers: decoder layers, for interleaved stages.
        global_batch: sequences in a step, for the number of microbatches.

    Raises:
        PlanError: the degrees do not divide the devices, or a plan cannot say them.
    """
    sizes = {key: degree(arguments, key) for key in (TENSOR, PIPELINE, CONTEXT)}
    tensor, stages, context = sizes[TENSOR], sizes[PIPELINE], sizes[CONTEXT]
    groups = groups_of(devices, sizes)
    expert = expert_axis(*_expert_degrees(arguments), groups)
    sharded = is_fully_sharded(arguments)
    replicas = degree(arguments, INSTANCES) if sharded else groups // expert
    if groups % (replicas * expert):
        raise PlanError(f"{groups} data-parallel groups are not a multiple of {INSTANCES}={replicas} and {EXPERT}")
    ici = Mesh(
        replica=replicas, data=groups // (expert * replicas), seq=context, model=tensor, expert=expert, stage=stages
    )
    return Plan(
        ici=ici,
        microbatches=_microbatches(arguments, groups, global_batch),
        pipeline_repeats=_repeats(arguments, stages, layers),
        remat=remat_of(arguments, layers, stages),
        offload=_offloaded(arguments),
    )


def _offloaded(arguments: Mapping[str, object]) -> tuple[Offload, ...]:
    if is_megatron_deepspeed(arguments):
        return offloaded_by_deepspeed(arguments)
    return ("optimizer",) if _true(arguments.get(OFFLOAD)) else ()


def experts_over(arguments: Mapping[str, object]) -> tuple[FoldedAxis, ...]:
    """Axes beside its own over which experts lie whole: of a run without expert and context parallelism, those over
    which they would.

    Raises:
        PlanError: a degree is no whole number.
    """
    if isinstance(said := arguments.get(FOLDED), tuple):
        return said
    expert, split, tensor, context = _expert_degrees(arguments)
    if expert == 1:
        return ("seq",) if context == 1 and arguments.get("num_experts") else ()
    return folded_axes(expert, split, tensor, context)


def is_fully_sharded(arguments: Mapping[str, object]) -> bool:
    """Whether data parallelism shards parameters."""
    if is_megatron_deepspeed(arguments):
        return stage_of(arguments) == 3
    if _true(arguments.get("use_torch_fsdp2")):
        return True
    megatron = any(_true(arguments.get(key)) for key in (FSDP, "use_custom_fsdp"))
    return megatron and arguments.get(STRATEGY, _FULL_SHARDING) == _FULL_SHARDING


def remat_of(arguments: Mapping[str, object], layers: int | None = None, stages: int = 1) -> Remat:
    """What is recomputed; without ``--recompute-granularity`` nothing.

    ``block`` recomputes so many layers of a stage; any but none counts as all. ``selective`` recomputes modules, by
    default ``core_attn``; small ones (norms, activations) count as nothing.
    """
    granularity = str(arguments.get(GRANULARITY) or "").casefold()
    if granularity == "full":
        none = str(arguments.get(METHOD)) == "block" and str(arguments.get(RECOMPUTED_LAYERS)) == "0"
        return Remat.NONE if none else Remat.FULL
    if granularity == "selective" or _true(arguments.get("recompute_activations")):
        said = arguments.get(MODULES)
        modules = [] if said is None else said.split() if isinstance(said, str) else list(map(str, _sequence(said)))
        if {"mlp", "moe"} & set(modules):
            return Remat.SAVE_DOT_EXCEPT_MLP
        return Remat.SELECTIVE if not modules or "core_attn" in modules else Remat.NONE
    return Remat.NONE


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
        **_batch(plan, global_batch),
        **_stages(plan, current, layers),
        **_recompute(plan, current, layers),
        OFFLOAD: "optimizer" in plan.offload,
        **_training_state(plan, of_deepspeed),
    }
    if {"parameters", "activations"} & set(plan.offload) and not of_deepspeed:
        raise PlanError("Megatron-LM offloads the optimizer only, as far as a plan can say it")
    if plan.degree("model") > 1 and plan.degree("expert") > 1:
        wanted[_SEQUENCE] = True  # Megatron-Core refuses tensor and expert parallelism without it
    changed = {key: value for key, value in wanted.items() if not _same(current.get(key), value, key)}
    changed |= invalidated(plan, changed, wanted, current)
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


def _expert_degrees(arguments: Mapping[str, object]) -> tuple[int, int, int, int]:
    """Of experts, of tensor parallelism inside of them and beside them, and of context parallelism."""
    tensor = degree(arguments, TENSOR)
    return degree(arguments, EXPERT), degree(arguments, EXPERT_TENSOR, tensor), tensor, degree(arguments, CONTEXT)


def _expert(plan: Plan, current: Mapping[str, object]) -> dict[str, str | bool]:
    """Expert degrees; experts that were whole beside tensor or context parallelism stay so."""
    expert, tensor = plan.degree("expert"), plan.degree("model")
    over = experts_over(current)
    if "seq" in over:
        expert *= plan.degree("seq")
    if FOLDED in current and "model" in over:
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
    if _true(current.get("use_torch_fsdp2")):
        return {INSTANCES: str(plan.degree("replica"))}
    wanted: dict[str, str | bool] = {FSDP: True, STRATEGY: _FULL_SHARDING, "use_distributed_optimizer": True}
    return wanted | {INSTANCES: str(plan.degree("replica"))}


def _batch(plan: Plan, global_batch: int | None) -> dict[str, str | bool]:
    if plan.microbatches is None or global_batch is None:
        return {}
    each, rest = divmod(global_batch, plan.batch_shards * plan.microbatches)
    if rest or not each:
        shards = f"{plan.batch_shards} data-parallel groups of {plan.microbatches} microbatches"
        raise PlanError(f"{global_batch} sequences do not divide into {shards}")
    return {MICRO_BATCH: str(each), **({GLOBAL_BATCH: str(global_batch)} if plan.global_batch else {})}


def _stages(plan: Plan, current: Mapping[str, object], layers: int | None) -> dict[str, str | bool]:
    stages, repeats = plan.degree("stage"), plan.pipeline_repeats if plan.degree("stage") > 1 else 1
    if repeats > 1 and plan.microbatches and plan.microbatches % stages and not set(GROUPS) & set(current):
        taken = f"an interleaved pipeline of {stages} stages takes as many microbatches at once"
        raise PlanError(f"{taken}: {plan.microbatches} are no multiple")
    if current.get(LAYOUT) is not None:
        kept = stages == degree(current, PIPELINE) and repeats == repeats_of(current[LAYOUT], stages)
        return {} if kept else {LAYOUT: False, VIRTUAL: str(repeats) if repeats > 1 else False}
    if (LAYERS_EACH in current or lacks(current, VIRTUAL)) and layers is not None:
        each, rest = divmod(layers, stages * repeats)
        if rest:
            raise PlanError(f"{layers} layers do not divide into {stages} stages x {repeats}")
        return {LAYERS_EACH: str(each) if repeats > 1 else False}
    return {VIRTUAL: str(repeats) if repeats > 1 else False}


def _recompute(plan: Plan, current: Mapping[str, object], layers: int | None) -> dict[str, str | bool]:
    if plan.remat is None or plan.remat is remat_of(current, layers):
        return {}
    plain_flags: dict[str, str | bool] = {"recompute_activations": False}
    rest: dict[str, str | bool] = {METHOD: False, RECOMPUTED_LAYERS: False, MODULES: False}
    if plan.remat is Remat.FULL:
        return plain_flags | {GRANULARITY: "full", METHOD: "uniform", RECOMPUTED_LAYERS: "1", MODULES: False}
    if plan.remat is Remat.SELECTIVE:
        return plain_flags | rest | {GRANULARITY: "selective"}
    if plan.remat is Remat.NONE:
        return plain_flags | rest | {GRANULARITY: False}
    raise PlanError(f"Megatron-LM has no recomputation like remat={plan.remat.value}", hint="full, selective or none")


def _training_state(plan: Plan, of_deepspeed: bool) -> dict[str, str | bool]:
    moments = {key: precision for name, key in MOMENTS.items() if (precision := getattr(plan, name)) is not None}
    aware = moments or ("optimizer" in plan.offload and not of_deepspeed)
    wanted: dict[str, str | bool] = {PRECISION_AWARE: True, **moments} if aware else {}
    return wanted | ({OPTIMIZER: plan.optimizer.removesuffix("w")} if plan.optimizer else {})


def _repeats(arguments: Mapping[str, object], stages: int, layers: int | None) -> int:
    if stages == 1:
        return 1
    if arguments.get(LAYOUT) is not None:
        return repeats_of(arguments[LAYOUT], stages)
    if arguments.get(LAYERS_EACH) is not None:
        each = degree(arguments, LAYERS_EACH)
        layers = counted_layers(arguments, layers)
        if layers is None or layers % (stages * each):
            raise PlanError(f"{LAYERS_EACH}={each} does not divide {layers or 'unknown'} layers over {stages} stages")
        return layers // (stages * each)
    return degree(arguments, VIRTUAL)


def _microbatches(arguments: Mapping[str, object], groups: int, global_batch: int | None) -> int | None:
    if global_batch is None or arguments.get(MICRO_BATCH) is None:
        return None
    each = degree(arguments, MICRO_BATCH)
    count, rest = divmod(global_batch, each * groups)
    if rest or not count:
        shares = f"{MICRO_BATCH} {each} x {groups} data-parallel groups"
        raise PlanError(f"global_batch_size {global_batch} is not a multiple of {shares}")
    return count


def _same(value: object, wanted: str | bool, key: str) -> bool:
    if isinstance(wanted, bool):
        present = value is not None and str(value).casefold() not in ("false", "none", "")
        return present == wanted
    default = {INSTANCES: "1"}.get(
        key, "1" if key.endswith("_size") and key not in (MICRO_BATCH, EXPERT_TENSOR) else None
    )
    return str(default if value is None else value) == wanted


def _sequence(value: object) -> tuple[object, ...]:
    return tuple(value) if isinstance(value, list | tuple) else (value,)


def _true(value: object) -> bool:
    return str(value).casefold() == "true"
