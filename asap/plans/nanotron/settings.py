"""A plan as nanotron's settings, both ways (huggingface/nanotron, ``src/nanotron/config/parallelism_config.py``).

Data parallelism replicates parameters (``replica``). Settings go by section and key: ``parallelism.tp``.
"""

from collections.abc import Mapping

from asap.core.errors import PlanError
from asap.plans.degrees import InexpressiblePlanError, degree, sequences_of_a_microbatch
from asap.plans.plan import Mesh, Plan, Remat

DATA, TENSOR, PIPELINE = "parallelism.dp", "parallelism.tp", "parallelism.pp"
CONTEXT, EXPERT = "parallelism.context_parallel_size", "parallelism.expert_parallel_size"
RECOMPUTE = "parallelism.recompute_layer"
MICRO_BATCH, ACCUMULATION = "tokens.micro_batch_size", "tokens.batch_accumulation_per_replica"
_ENGINE, _MODEL = "parallelism.pp_engine", "model.model_config."
_IN_TURN = "1f1b"
_QWEN, _ATTENTION = f"{_MODEL}is_qwen2_config", f"{_MODEL}_attn_implementation"
_DEFAULTS = {CONTEXT: "1", EXPERT: "1", RECOMPUTE: "false"}


def from_settings(settings: Mapping[str, object]) -> Plan:
    """The plan that nanotron makes of its settings; they say all degrees, and so the devices.

    Raises:
        PlanError: a degree is no positive whole number, or a plan cannot say the layout.
    """
    if degree(settings, EXPERT) > 1:
        raise InexpressiblePlanError("nanotron lays experts over devices that none of its other degrees counts")
    axes = {"replica": DATA, "seq": CONTEXT, "model": TENSOR, "stage": PIPELINE}
    return Plan(
        ici=Mesh(**{axis: degree(settings, key) for axis, key in axes.items()}),
        microbatches=degree(settings, ACCUMULATION),
        remat=Remat.FULL if str(settings.get(RECOMPUTE)).casefold() == "true" else Remat.NONE,
    )


def global_batch_of(settings: Mapping[str, object]) -> int:
    """Sequences in a step; raises like :func:`from_settings`."""
    return degree(settings, MICRO_BATCH) * degree(settings, ACCUMULATION) * degree(settings, DATA)


def to_settings(plan: Plan, current: Mapping[str, object], *, global_batch: int | None = None) -> dict[str, str]:
    """Settings that have to change for nanotron to run a plan.

    Raises:
        PlanError: nanotron cannot express the plan.
    """
    if missing := [axis for axis in ("data", "expert") if plan.degree(axis) > 1]:  # pyright: ignore[reportArgumentType]
        raise PlanError(f"nanotron has no degree for {' and '.join(missing)}")
    if plan.offload or plan.pipeline_repeats > 1:
        raise PlanError("nanotron has neither offloading nor virtual pipeline stages")
    if plan.degree("seq") > 1 and not _passes_context(current):
        hint = f"{_ATTENTION}: llama3_ring_attention"
        raise PlanError("nanotron has context parallelism in its Qwen alone, with ring attention", hint=hint)
    stages, microbatches = plan.degree("stage"), plan.microbatches
    if str(current.get(_ENGINE)).casefold() == _IN_TURN and microbatches is not None and microbatches < stages - 1:
        raise PlanError(f"{microbatches} microbatches are too few for {stages} stages with {_ENGINE}: {_IN_TURN}")
    wanted = {
        DATA: str(plan.degree("replica")),
        TENSOR: str(plan.degree("model")),
        PIPELINE: str(plan.degree("stage")),
        CONTEXT: str(plan.degree("seq")),
        **_recompute(plan),
        **_batch(plan, global_batch),
    }
    return {key: value for key, value in wanted.items() if str(current.get(key, _DEFAULTS.get(key))).lower() != value}


def _passes_context(current: Mapping[str, object]) -> bool:
    """Whether the model that is configured, if one is, takes a part of a sequence (``models/qwen.py``)."""
    configured = any(key.startswith(_MODEL) for key in current)
    return not configured or (current.get(_QWEN) is True and "ring" in str(current.get(_ATTENTION)))


def _recompute(plan: Plan) -> dict[str, str]:
    if plan.remat is None:
        return {}
    if plan.remat not in (Remat.NONE, Remat.FULL):
        raise PlanError(f"nanotron has no recomputation like remat={plan.remat.value}", hint="full or none")
    return {RECOMPUTE: str(plan.remat is Remat.FULL).lower()}


def _batch(plan: Plan, global_batch: int | None) -> dict[str, str]:
    if plan.microbatches is None or global_batch is None:
        return {}
    each = sequences_of_a_microbatch(plan, plan.microbatches, global_batch)
    return {MICRO_BATCH: str(each), ACCUMULATION: str(plan.microbatches)}
