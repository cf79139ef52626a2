"""The plan that Megatron-LM's arguments say (``megatron/training/arguments.py``, ModelParallelConfig of its core).

Data parallelism replicates parameters (``replica``) unless Megatron-FSDP or PyTorch's FSDP2 shards them (``data``).
"""

from collections.abc import Mapping
from fractions import Fraction

from asap.core.errors import PlanError
from asap.core.text import plain
from asap.models.workload import FoldedAxis
from asap.plans.degrees import FOLDED, degree, expert_axis, folded_axes, groups_of
from asap.plans.partial_remat import MODULES as CORE_MODULES
from asap.plans.plan import Mesh, Offload, Plan
from asap.plans.remat import Policy, Remat, recomputed_layers, recomputed_modules
from asap.stacks.megatron.forks import is_megatron_deepspeed, offloaded_by_deepspeed, stage_of
from asap.stacks.megatron.requirements import counted_layers, has_biased_experts
from asap.stacks.megatron.stages import LAYOUT, numbered_layers, repeats_of

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
_CHOICES = {GRANULARITY: ("full", "selective"), METHOD: ("uniform", "block")}
_BETWEEN = str.maketrans(dict.fromkeys("[],'\"", " "))
"""What stands around the words of a list in a text."""
_UNSET = ("", "none", "null", "false")
OFFLOAD = "optimizer_cpu_offload"
FULL_SHARDING = "optim_grads_params"


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
    repeats = _repeats(arguments, stages, layers)
    return Plan(
        ici=ici,
        microbatches=_microbatches(arguments, groups, global_batch),
        pipeline_repeats=repeats,
        remat=remat_of(arguments, layers, stages * repeats),
        offload=_offloaded(arguments),
    )


def _offloaded(arguments: Mapping[str, object]) -> tuple[Offload, ...]:
    if is_megatron_deepspeed(arguments):
        return offloaded_by_deepspeed(arguments)
    return ("optimizer",) if is_true(arguments.get(OFFLOAD)) else ()


def experts_over(arguments: Mapping[str, object]) -> tuple[FoldedAxis, ...]:
    """Axes beside its own over which experts lie whole: of a run without expert and context parallelism, those over
    which they would.

    Raises:
        PlanError: a degree is no whole number.
    """
    if isinstance(said := arguments.get(FOLDED), tuple):
        return said
    expert, split, tensor, context = _expert_degrees(arguments)
    whole: tuple[FoldedAxis, ...] = ("model",) if tensor == 1 and has_biased_experts(arguments) else ()
    if expert == 1:
        return (*whole, *(("seq",) if context == 1 and arguments.get("num_experts") else ()))
    return tuple(dict.fromkeys((*whole, *folded_axes(expert, split, tensor, context))))


def is_fully_sharded(arguments: Mapping[str, object]) -> bool:
    """Whether data parallelism shards parameters."""
    if is_megatron_deepspeed(arguments):
        return stage_of(arguments) == 3
    if is_true(arguments.get("use_torch_fsdp2")):
        return True
    megatron = any(is_true(arguments.get(key)) for key in (FSDP, "use_custom_fsdp"))
    return megatron and arguments.get(STRATEGY, FULL_SHARDING) == FULL_SHARDING


def remat_of(arguments: Mapping[str, object], layers: int | None = None, chunks: int = 1) -> Policy:
    """What is recomputed; without ``--recompute-granularity`` nothing.

    Args:
        arguments: by name.
        layers: decoder layers.
        chunks: virtual stages of the pipeline. ``block`` recomputes so many layers of each, and all where the layers
            are not known. ``selective`` recomputes modules, by default ``core_attn``.

    Raises:
        PlanError: a granularity, method or layers that Megatron-LM does not know.
    """
    granularity = _chosen(arguments, GRANULARITY)
    if granularity == "full":
        method = _chosen(arguments, METHOD)
        count = degree(arguments, RECOMPUTED_LAYERS) if str(arguments.get(RECOMPUTED_LAYERS, "0")) != "0" else 0
        if (numbered := numbered_layers(arguments, layers)) and layers is not None:
            return recomputed_layers(Fraction(len(numbered), layers))
        if method != "block" or (count and layers is None):
            return Remat.FULL
        return recomputed_layers(Fraction(count * chunks, layers or 1))
    if granularity == "selective" or is_true(arguments.get("recompute_activations")):
        said = arguments.get(MODULES)
        modules = words_of(said)
        known = [module for module in modules if module in CORE_MODULES]
        return Remat.SELECTIVE if said is None or (modules and not known) else recomputed_modules(known)
    return Remat.NONE


def _chosen(arguments: Mapping[str, object], key: str) -> str | None:
    """What an argument with a few choices says; ``None`` where it says nothing."""
    said = arguments.get(key)
    word = str(said).casefold()
    if said is None or word in _UNSET:
        return None
    if word not in _CHOICES[key]:
        either = " or ".join(_CHOICES[key])
        raise PlanError(
            f"{key} must be {either}, not {plain(repr(said), 40)}", hint=f"say it: {key}={_CHOICES[key][0]}"
        )
    return word


def words_of(value: object) -> list[str]:
    """Words of an argument that takes several, also where a text has them as a list: ``[core_attn, mlp]``."""
    if value is None:
        return []
    return " ".join(map(str, _sequence(value))).translate(_BETWEEN).split()


def _expert_degrees(arguments: Mapping[str, object]) -> tuple[int, int, int, int]:
    """Of experts, of tensor parallelism inside of them and beside them, and of context parallelism."""
    tensor = degree(arguments, TENSOR)
    return degree(arguments, EXPERT), degree(arguments, EXPERT_TENSOR, tensor), tensor, degree(arguments, CONTEXT)


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


def _sequence(value: object) -> tuple[object, ...]:
    return tuple(value) if isinstance(value, list | tuple) else (value,)


def is_true(value: object) -> bool:
    """Whether a flag is on."""
    return str(value).casefold() == "true"
