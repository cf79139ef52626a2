"""A plan as Axolotl's settings, both ways (axolotl-ai-cloud/axolotl, ``docs/nd_parallelism.qmd``,
``src/axolotl/utils/distributed.py``).

With FSDP ``dp_shard_size`` shards parameters (``data``) and ``dp_replicate_size`` replicates the shards (``replica``);
without it every group of devices has a replica. Settings go by dotted key: ``fsdp_config.offload_params``.
"""

from collections.abc import Mapping

from asap.core.errors import PlanError
from asap.plans.axolotl.requirements import check
from asap.plans.degrees import InexpressiblePlanError, degree, groups_of, sequences_of_a_microbatch
from asap.plans.plan import Mesh, Offload, Plan, Remat

SHARD, REPLICATE = "dp_shard_size", "dp_replicate_size"
TENSOR, CONTEXT, EXPERT = "tensor_parallel_size", "context_parallel_size", "expert_parallel_size"
EARLIER_CONTEXT = "sequence_parallel_degree"
"""What releases before ``context_parallel_size`` call it; later ones take it as well."""
MICRO_BATCH, ACCUMULATION = "micro_batch_size", "gradient_accumulation_steps"
RECOMPUTE, OFFLOAD_ACTIVATIONS = "gradient_checkpointing", "activation_offloading"
FSDP, FSDP_CONFIG = "fsdp", "fsdp_config"
_DEFAULTS = {
    **dict.fromkeys((SHARD, REPLICATE, TENSOR, CONTEXT, EARLIER_CONTEXT, EXPERT, MICRO_BATCH, ACCUMULATION), "1"),
    **dict.fromkeys((RECOMPUTE, OFFLOAD_ACTIVATIONS), "false"),
}
_OFFLOADED: tuple[Offload, ...] = ("optimizer", "parameters")
_ON_HOST = ("offload", "offload_disk")


def is_sharded(settings: Mapping[str, object]) -> bool:
    """Whether FSDP shards parameters."""
    configured = bool(settings.get(FSDP)) or any(key.startswith(f"{FSDP_CONFIG}.") for key in settings)
    return configured and _strategy(settings) != "NO_SHARD"


def is_on(settings: Mapping[str, object], key: str) -> bool:
    """Whether a switch is on; some say how, as ``gradient_checkpointing: offload``."""
    return str(settings.get(key) or "false").casefold() not in ("false", "no", "none")


def offloads_activations(settings: Mapping[str, object]) -> bool:
    """Whether what recomputation keeps waits in host memory."""
    return is_on(settings, OFFLOAD_ACTIVATIONS) or str(settings.get(RECOMPUTE)) in _ON_HOST


def keeps_gathered(settings: Mapping[str, object]) -> bool:
    """Whether weights that FSDP has gathered for the forward pass stay until the backward pass."""
    said = str(settings.get(fsdp_key(settings, "reshard_after_forward")))
    return is_sharded(settings) and (_strategy(settings) == "SHARD_GRAD_OP" or said.casefold() == "false")


def fsdp_key(settings: Mapping[str, object], name: str) -> str:
    """The key of a setting of FSDP, which version 1 writes with a prefix."""
    first = f"{FSDP_CONFIG}.fsdp_{name}"
    return first if first in settings else f"{FSDP_CONFIG}.{name}"


def context_key(settings: Mapping[str, object]) -> str:
    """The key of the devices that share a sequence, by the release."""
    return EARLIER_CONTEXT if settings.get(CONTEXT) is None and settings.get(EARLIER_CONTEXT) is not None else CONTEXT


def recomputation_keys(settings: Mapping[str, object]) -> tuple[str, ...]:
    """Switches of which each makes layers compute again what they did not keep."""
    own = (RECOMPUTE,)
    return (*own, fsdp_key(settings, "activation_checkpointing")) if is_sharded(settings) else own


def from_settings(settings: Mapping[str, object], devices: int) -> Plan:
    """The plan that Axolotl makes of its settings on so many devices; what is absent has its default.

    Raises:
        PlanError: the degrees do not multiply to the devices, or a plan cannot say them.
    """
    context = context_key(settings)
    degrees = {key: degree(settings, key) for key in (TENSOR, context, EXPERT)}
    groups = groups_of(devices, degrees)
    replicas = _replicas(settings, groups)
    recomputes, offload = any(is_on(settings, key) for key in recomputation_keys(settings)), ()
    if is_sharded(settings):
        offload = _OFFLOADED if is_on(settings, fsdp_key(settings, "offload_params")) else ()
    return Plan(
        ici=Mesh(
            replica=replicas,
            data=groups // replicas,
            seq=degrees[context],
            model=degrees[TENSOR],
            expert=degrees[EXPERT],
        ),
        microbatches=degree(settings, ACCUMULATION),
        remat=Remat.FULL if recomputes else Remat.NONE,
        offload=(*offload, "activations") if recomputes and offloads_activations(settings) else offload,
    )


def global_batch_of(settings: Mapping[str, object], plan: Plan) -> int:
    """Sequences in a step."""
    return degree(settings, MICRO_BATCH) * degree(settings, ACCUMULATION) * plan.batch_shards


def to_settings(plan: Plan, current: Mapping[str, object], *, global_batch: int | None = None) -> dict[str, str]:
    """Settings that have to change for Axolotl to run a plan.

    Raises:
        PlanError: Axolotl cannot express the plan.
    """
    _check(plan, current)
    batch, sharded = _batch(plan, global_batch), is_sharded(current)
    check(plan, current, sharded, int(batch[MICRO_BATCH]) if batch else None)
    wanted = {
        SHARD: str(plan.degree("data")),
        REPLICATE: str(plan.degree("replica")),
        TENSOR: str(plan.degree("model")),
        context_key(current): str(plan.degree("seq")),
        EXPERT: str(plan.degree("expert")),
        **_recompute(plan, current),
        **batch,
    }
    if sharded:
        wanted[fsdp_key(current, "offload_params")] = str("parameters" in plan.offload).lower()
    alone = all(plan.degree(axis) == 1 for axis in ("replica", "model", "seq", "expert"))
    unsaid = [REPLICATE] if not sharded else [SHARD] if current.get(SHARD) is None and alone else []
    return {key: value for key, value in wanted.items() if key not in unsaid and not _same(current, key, value)}


def _check(plan: Plan, current: Mapping[str, object]) -> None:
    data, expert = plan.degree("data"), plan.degree("expert")
    if plan.degree("stage") > 1:
        raise PlanError("Axolotl has no pipeline parallelism")
    if is_sharded(current) and data == 1 and plan.degree("replica") > 1:
        raise PlanError(
            "Axolotl replicates all parameters only without fsdp_config", hint="a data degree of two or more"
        )
    if not is_sharded(current) and data > 1:
        raise PlanError("Axolotl shards no parameters without fsdp_config", hint="replica in place of data")
    if expert > 1 and (EXPERT not in current or plan.degree("model") > 1):
        raise PlanError(
            "Axolotl has expert parallelism with its ExpertParallelPlugin alone, and not with tensors split"
        )
    moved = set(plan.offload) - {"activations"}
    if moved and (moved != set(_OFFLOADED) or not is_sharded(current)):
        raise PlanError("Axolotl offloads parameters and optimizer together, under fsdp_config")


def _replicas(settings: Mapping[str, object], groups: int) -> int:
    """Copies of the parameters: all groups without FSDP, else what is said, or what ``dp_shard_size`` leaves."""
    if not is_sharded(settings):
        return groups
    if settings.get(SHARD) is None and _strategy(settings).startswith("HYBRID"):
        raise InexpressiblePlanError(f"a hybrid strategy shards over the GPUs of a node: say them as {SHARD}")
    shards = groups // degree(settings, REPLICATE) if settings.get(SHARD) is None else degree(settings, SHARD)
    replicas = groups // shards if settings.get(REPLICATE) is None and shards else degree(settings, REPLICATE)
    if shards * replicas != groups:
        hint = f"change a size on the command line, such as {SHARD}=…"
        raise PlanError(
            f"{SHARD}={shards} x {REPLICATE}={replicas}, and the other degrees leave {groups} devices", hint=hint
        )
    return replicas


def _recompute(plan: Plan, current: Mapping[str, object]) -> dict[str, str]:
    """Recomputation by the switches that are on: Axolotl's own, and that of FSDP."""
    if plan.remat is None:
        return {}
    if plan.remat not in (Remat.NONE, Remat.FULL):
        raise PlanError(f"Axolotl has no recomputation like remat={plan.remat.value}", hint="full or none")
    said = {OFFLOAD_ACTIVATIONS: str("activations" in plan.offload).lower()}
    on = [key for key in recomputation_keys(current) if is_on(current, key)]
    if plan.remat is Remat.NONE:
        return said | dict.fromkeys(on, "false")
    return said if on else said | {RECOMPUTE: "true"}


def _batch(plan: Plan, global_batch: int | None) -> dict[str, str]:
    if plan.microbatches is None or global_batch is None:
        return {}
    each = sequences_of_a_microbatch(plan, plan.microbatches, global_batch)
    return {MICRO_BATCH: str(each), ACCUMULATION: str(plan.microbatches)}


def _strategy(settings: Mapping[str, object]) -> str:
    return str(settings.get(fsdp_key(settings, "sharding_strategy")) or "").upper()


def _same(current: Mapping[str, object], key: str, value: str) -> bool:
    if value in ("true", "false"):
        return is_on(current, key) == (value == "true")
    said = current.get(key)
    return str(_DEFAULTS.get(key) if said is None else said).casefold() == value
