"""A plan as torchtitan's settings, both ways (``torchtitan/config/job_config.py``, ``distributed/parallel_dims.py``).

Settings go by section and key: ``parallelism.tensor_parallel_degree``.
"""

from collections.abc import Mapping
from fractions import Fraction

from asap.core.errors import PlanError
from asap.models.workload import FoldedAxis
from asap.plans.degrees import FOLDED, InexpressiblePlanError, degree, expert_axis, folded_axes, groups_of
from asap.plans.plan import Mesh, Offload, Plan
from asap.plans.remat import Policy, RecomputedLayers, Remat, recomputed_layers
from asap.stacks.registry import abstract
from asap.stacks.torchtitan.stages import (
    GLOBAL_BATCH,
    LOCAL_BATCH,
    PIPELINE,
    STAGE_BATCH,
    in_earlier_names,
    in_names_of_today,
    in_sequences,
    in_tokens,
    repeats_of,
    stage_settings,
)

TABLE = abstract("torchtitan")
REPLICATE = "parallelism.data_parallel_replicate_degree"
SHARD = "parallelism.data_parallel_shard_degree"
TENSOR = "parallelism.tensor_parallel_degree"
CONTEXT = "parallelism.context_parallel_degree"
EXPERT = "parallelism.expert_parallel_degree"
EXPERT_TENSOR = "parallelism.expert_tensor_parallel_degree"
REMAT, REMAT_OPTION = "activation_checkpoint.mode", "activation_checkpoint.selective_ac_option"
OFFLOAD = "training.enable_cpu_offload"
DTYPE = "training.dtype"

LOCAL_BATCH_DEFAULT = 8
_DTYPES = {"fp32": "float32", "bf16": "bfloat16"}
_OFFLOADED: tuple[Offload, ...] = ("optimizer", "parameters")
_DEFAULTS = {key: "false" if value is False else str(value) for key, value in TABLE.defaults.items()} | {
    LOCAL_BATCH: str(LOCAL_BATCH_DEFAULT)
}


def from_settings(settings: Mapping[str, object], devices: int, layers: int | None = None) -> Plan:
    """The plan that torchtitan makes of its settings on so many devices; what is absent has its default.

    Raises:
        PlanError: the degrees do not multiply to the devices, or a plan cannot say them.
    """
    settings = _today(settings)
    degrees = {key: degree(settings, key) for key in (REPLICATE, TENSOR, CONTEXT, PIPELINE)}
    shards = _shards(settings, devices, degrees)
    expert = expert_axis(*_of_experts(settings), shards)
    stages = degrees[PIPELINE]
    ici = Mesh(
        replica=degrees[REPLICATE], data=shards // expert, seq=degrees[CONTEXT], model=degrees[TENSOR], expert=expert,
        stage=stages,
    )  # fmt: skip
    return Plan(
        ici=ici,
        microbatches=_microbatches(settings, degrees[REPLICATE] * shards, stages),
        pipeline_repeats=repeats_of(settings, stages, layers),
        remat=remat_of(settings),
        offload=_OFFLOADED if str(settings.get(OFFLOAD)).casefold() == "true" else (),
    )


def global_batch_of(settings: Mapping[str, object], groups: int) -> int:
    """Sequences in a step: as said, else a local batch for each data-parallel group."""
    settings = _today(settings)
    if str(settings.get(GLOBAL_BATCH, -1)) != "-1":
        return degree(settings, GLOBAL_BATCH)
    return degree(settings, LOCAL_BATCH, LOCAL_BATCH_DEFAULT) * groups


def remat_of(settings: Mapping[str, object]) -> Policy | None:
    """What is recomputed; ``None`` where a memory budget decides.

    ``selective`` of operations keeps what matrix products write; of every nth layer, all of the others.
    """
    mode = str(settings.get(REMAT, _DEFAULTS[REMAT])).casefold()
    if mode == "selective":
        every = str(settings.get(REMAT_OPTION, _DEFAULTS[REMAT_OPTION]))
        return recomputed_layers(Fraction(1, int(every))) if every.isdecimal() and int(every) else Remat.MINIMAL
    if mode == "memory_budget":
        return None
    if mode not in ("none", "full"):
        raise PlanError(f"torchtitan has no {REMAT} {mode[:40]!r}", hint="none, selective or full")
    return Remat(mode)


def to_settings(
    plan: Plan, current: Mapping[str, object] | None, *, global_batch: int | None = None, layers: int | None = None
) -> dict[str, str]:
    """Settings that have to change for torchtitan to run a plan; all of them where there is no configuration.

    Raises:
        PlanError: torchtitan cannot express the plan.
    """
    whole, written, current = current is None, current or {}, _today(current or {})
    wanted = {
        REPLICATE: str(plan.degree("replica")),
        SHARD: str(plan.degree("data") * plan.degree("expert")),
        TENSOR: str(plan.degree("model")),
        CONTEXT: str(plan.degree("seq")),
        PIPELINE: str(plan.degree("stage")),
        **_expert_degrees(plan, current),
        **_batch(plan, current, global_batch),
        **stage_settings(plan, current, layers),
        **_recompute(plan, None if whole else remat_of(current)),
        OFFLOAD: str(bool(plan.offload)).lower(),
        **({DTYPE: _DTYPES[plan.weight_precision]} if plan.weight_precision else {}),
    }
    if plan.offload and set(plan.offload) != set(_OFFLOADED):
        raise PlanError("torchtitan offloads parameters and optimizer together")
    changed = {key: value for key, value in wanted.items() if whole or not _same(current, key, value, plan)}
    return in_earlier_names(in_tokens(changed, written), written)


def _today(settings: Mapping[str, object]) -> Mapping[str, object]:
    """The settings under today's names, with batches in sequences."""
    return in_sequences(in_names_of_today(settings))


def toml_lines(settings: Mapping[str, str]) -> str:
    """The settings as sections of TOML to paste over those of the configuration."""
    sections: dict[str, list[str]] = {}
    for key, value in settings.items():
        section, _, name = key.rpartition(".")
        bare = value[:1] == "[" or (
            (value.lstrip("-").isdecimal() or value in ("true", "false")) and key != REMAT_OPTION
        )
        sections.setdefault(section, []).append(f"{name} = {value}" if bare else f'{name} = "{value}"')
    return "\n".join(line for section, lines in sections.items() for line in (f"[{section}]", *lines))


def _shards(settings: Mapping[str, object], devices: int, degrees: Mapping[str, int]) -> int:
    groups = groups_of(devices, {key.rpartition(".")[2]: value for key, value in degrees.items()})
    if str(settings.get(SHARD, -1)) == "-1":
        return groups
    said = degree(settings, SHARD)
    if said != groups:
        raise PlanError(f"{SHARD}={said}, and {devices} devices leave {groups} for it")
    return said


def experts_over(settings: Mapping[str, object], mixture: bool = False) -> tuple[FoldedAxis, ...]:
    """Axes beside its own over which experts lie whole: of degree 1, those over which they would.

    Args:
        settings: by section and key.
        mixture: whether the model has experts, which settings say only where expert parallelism is on.

    Raises:
        PlanError: a degree is no whole number.
    """
    if isinstance(said := settings.get(FOLDED), tuple):
        return said
    expert, split, tensor, context = _of_experts(settings)
    folded = folded_axes(expert, split, tensor, context)
    if tensor > 1 or degree(settings, EXPERT_TENSOR) > 1 or not (mixture or expert > 1):
        return folded
    return ("model", "seq") if context == 1 or "seq" in folded else ("model",)


def _of_experts(settings: Mapping[str, object]) -> tuple[int, int, int, int]:
    """Degrees of experts, of tensor parallelism inside of them and beside them, and of context parallelism."""
    tensor, expert = degree(settings, TENSOR), degree(settings, EXPERT)
    return expert, degree(settings, EXPERT_TENSOR) if expert > 1 else tensor, tensor, degree(settings, CONTEXT)


def _expert_degrees(plan: Plan, current: Mapping[str, object]) -> dict[str, str]:
    expert, tensor = plan.degree("expert"), plan.degree("model")
    expert *= plan.degree("seq") if "seq" in experts_over(current) else 1
    if expert == 1 and not experts_over(current):
        return {EXPERT: "1"}
    if tensor > 1 and str(current.get(EXPERT_TENSOR, 1)) == "1":
        return {EXPERT: str(expert * tensor), EXPERT_TENSOR: "1"}
    return {EXPERT: str(expert), EXPERT_TENSOR: str(tensor)}


def _microbatches(settings: Mapping[str, object], groups: int, stages: int) -> int:
    local = degree(settings, LOCAL_BATCH, LOCAL_BATCH_DEFAULT)
    accumulated, rest = divmod(global_batch_of(settings, groups), local * groups)
    if rest or not accumulated:
        raise PlanError(f"{GLOBAL_BATCH} is not a multiple of {LOCAL_BATCH}={local} x {groups} data-parallel groups")
    if stages == 1:
        return accumulated
    if accumulated > 1:
        raise InexpressiblePlanError("gradient accumulation around a pipeline: a plan has one number of microbatches")
    count, rest = divmod(local, degree(settings, STAGE_BATCH))
    if rest or not count:
        raise PlanError(f"{LOCAL_BATCH}={local} is not a multiple of {STAGE_BATCH}={settings.get(STAGE_BATCH)}")
    return count


def _batch(plan: Plan, current: Mapping[str, object], global_batch: int | None) -> dict[str, str]:
    if global_batch is None or plan.microbatches is None:
        return {}
    local, rest = divmod(global_batch, plan.batch_shards)
    staged = plan.degree("stage") > 1
    each, more = divmod(local, plan.microbatches)
    if rest or more or not each:
        raise PlanError(f"{global_batch} sequences do not divide into {plan.batch_shards} groups x {plan.microbatches}")
    if staged:
        return {LOCAL_BATCH: str(local), STAGE_BATCH: str(each), GLOBAL_BATCH: str(global_batch)}
    return {LOCAL_BATCH: str(each), GLOBAL_BATCH: str(global_batch)}


def _recompute(plan: Plan, current: Policy | None) -> dict[str, str]:
    if plan.remat is None or plan.remat == current:
        return {}
    if plan.remat is Remat.MINIMAL:
        return {REMAT: "selective", REMAT_OPTION: "op"}
    if plan.remat in (Remat.NONE, Remat.FULL):
        return {REMAT: plan.remat.value}
    if isinstance(plan.remat, RecomputedLayers) and plan.remat.share.numerator == 1:
        return {REMAT: "selective", REMAT_OPTION: str(plan.remat.share.denominator)}
    hint = "full, minimal, none, or every second layer: full.1/2"
    raise PlanError(f"torchtitan has no recomputation like remat={plan.remat.value}", hint=hint)


def _same(current: Mapping[str, object], key: str, value: str, plan: Plan) -> bool:
    said = str(current.get(key, _DEFAULTS.get(key, "")))
    said = said.lower() if said in ("True", "False") else said
    if key == SHARD and said == "-1":  # takes what is left, which is this degree
        return True
    if key == GLOBAL_BATCH and said == "-1":
        return plan.microbatches == 1 or plan.degree("stage") > 1
    return said == value
