"""What of torchtitan's settings no table says, both ways: recomputation, experts, and how its releases count a batch
(``torchtitan/config/job_config.py``, ``distributed/parallel_dims.py``).

Settings go by section and key: ``parallelism.tensor_parallel_degree``.
"""

import math
from collections.abc import Mapping
from fractions import Fraction

from asap.core.errors import PlanError
from asap.models.workload import FoldedAxis
from asap.plans.degrees import FOLDED, InexpressiblePlanError, degree, folded_axes
from asap.plans.plan import Plan
from asap.plans.remat import Policy, RecomputedLayers, Remat, recomputed_layers
from asap.stacks.reading import INNER, axis_degree
from asap.stacks.registry import spec
from asap.stacks.torchtitan.stages import (
    GLOBAL_BATCH,
    LOCAL_BATCH,
    STAGE_BATCH,
    in_earlier_names,
    in_sequences,
    in_tokens,
    microbatches_of_earlier,
)

TABLE = spec("torchtitan")
TENSOR, CONTEXT = "parallelism.tensor_parallel_degree", "parallelism.context_parallel_degree"
EXPERT, EXPERT_TENSOR = "parallelism.expert_parallel_degree", "parallelism.expert_tensor_parallel_degree"
REMAT, REMAT_OPTION = "activation_checkpoint.mode", "activation_checkpoint.selective_ac_option"
LOCAL_BATCH_DEFAULT = 8

Settings = Mapping[str, object]


def counted(settings: Settings, devices: int | None) -> dict[str, object]:
    """The settings with what torchtitan takes of copies and of batches, in sequences; raises PlanError where a batch is
    none, or a plan cannot say it."""
    found: dict[str, object] = {"parallelism.data_parallel_replicate_degree": 1, **in_sequences(settings)}
    if (copies := TABLE.axes.replica) and copies.key(settings) != copies.keys[0]:
        found[copies.keys[0]] = settings[copies.key(settings)]
    stages, size = axis_degree(TABLE, found, "stage"), TABLE.batch.micro.key(found)
    count = microbatches_of_earlier(settings, stages)
    if size in found and found[size] is None:  # a variable that is not said
        return found
    local = degree(found, size, LOCAL_BATCH_DEFAULT)
    if stages > 1 and count:
        found[STAGE_BATCH] = max(local // count, 1)
    if devices:
        groups = devices // math.prod(axis_degree(TABLE, found, axis) for axis in INNER)
        said = str(found.get(GLOBAL_BATCH, -1)) != "-1"
        if said and stages > 1 and degree(found, GLOBAL_BATCH) > local * groups > 0:
            reason = "gradient accumulation around a pipeline: a plan has one number of microbatches"
            raise InexpressiblePlanError(reason)
        found[GLOBAL_BATCH] = found[GLOBAL_BATCH] if said else local * groups
    return found | {LOCAL_BATCH: local}


def remat_of(settings: Settings, *_: object) -> Policy | None:
    """What is recomputed; ``None`` where a memory budget decides.

    ``selective`` of operations keeps what matrix products write; of every nth layer, all of the others.
    """
    mode = str(settings.get(REMAT, TABLE.defaults[REMAT])).casefold()
    if mode == "selective":
        every = str(settings.get(REMAT_OPTION, TABLE.defaults[REMAT_OPTION]))
        return recomputed_layers(Fraction(1, int(every))) if every.isdecimal() and int(every) else Remat.MINIMAL
    if mode == "memory_budget":
        return None
    if mode not in ("none", "full"):
        raise PlanError(f"torchtitan has no {REMAT} {mode[:40]!r}", hint="none, selective or full")
    return Remat(mode)


def recomputing(settings: Settings, plan: Plan) -> dict[str, str]:
    """Settings by which a plan's recomputation is said; raises PlanError where torchtitan has none like it."""
    if plan.remat is None or plan.remat == remat_of(settings):
        return {}
    if plan.remat is Remat.MINIMAL:
        return {REMAT: "selective", REMAT_OPTION: "op"}
    if plan.remat in (Remat.NONE, Remat.FULL):
        return {REMAT: plan.remat.value}
    if isinstance(plan.remat, RecomputedLayers) and plan.remat.share.numerator == 1:
        return {REMAT: "selective", REMAT_OPTION: str(plan.remat.share.denominator)}
    hint = "full, minimal, none, or every second layer: full.1/2"
    raise PlanError(f"torchtitan has no recomputation like remat={plan.remat.value}", hint=hint)


def batch_settings(plan: Plan, settings: Settings, wanted: Mapping[str, str]) -> dict[str, str]:
    """Settings that are wanted, with the batch as the release of those on record has it.

    Args:
        plan: what to run.
        settings: on record.
        wanted: of today, the batch of a step and the microbatch among them.
    """
    found, staged = dict(wanted), plan.degree("stage") > 1
    if staged and plan.microbatches and STAGE_BATCH in found:
        found[TABLE.batch.micro.key(settings)] = str(int(found[STAGE_BATCH]) * plan.microbatches)
    if str(settings.get(GLOBAL_BATCH, -1)) == "-1" and (plan.microbatches == 1 or staged):
        found.pop(GLOBAL_BATCH, None)
    return in_earlier_names(plan, in_tokens(plan, found, settings), settings)


def literal(key: str, value: str) -> str:
    """A value as TOML has it: a text in quotes."""
    number = value.lstrip("-").isdecimal() and key != REMAT_OPTION
    return value if number or value[:1] == "[" or value in ("true", "false") else f'"{value}"'


def toml_lines(settings: Mapping[str, str]) -> str:
    """The settings as sections of TOML to paste over those of the configuration."""
    sections: dict[str, list[str]] = {}
    for key, value in settings.items():
        section, _, name = key.rpartition(".")
        sections.setdefault(section, []).append(f"{name} = {literal(key, value)}")
    return "\n".join(line for section, lines in sections.items() for line in (f"[{section}]", *lines))


def experts_over(settings: Settings, mixture: bool = False) -> tuple[FoldedAxis, ...]:
    """Axes beside its own over which experts lie whole: of degree 1, those over which they would.

    Args:
        settings: by section and key.
        mixture: whether the model has experts, which settings say only where expert parallelism is on.

    Raises:
        PlanError: a degree is no whole number.
    """
    if isinstance(said := settings.get(FOLDED), tuple):
        return said
    expert, tensor, context = (degree(settings, key) for key in (EXPERT, TENSOR, CONTEXT))
    folded = folded_axes(expert, degree(settings, EXPERT_TENSOR) if expert > 1 else tensor, tensor, context)
    if tensor > 1 or degree(settings, EXPERT_TENSOR) > 1 or not (mixture or expert > 1):
        return folded
    return ("model", "seq") if context == 1 or "seq" in folded else ("model",)


def expert_degrees(plan: Plan, current: Settings) -> dict[str, str]:
    """Degrees of experts, and of tensor parallelism inside of them, without those that are 1 and not said."""
    expert, tensor = plan.degree("expert"), plan.degree("model")
    over = experts_over(current, mixture=expert > 1)
    expert *= plan.degree("seq") if "seq" in over else 1
    whole = tensor > 1 and str(current.get(EXPERT_TENSOR, 1)) == "1"
    found = {EXPERT: str(expert * tensor if whole else expert), EXPERT_TENSOR: "1" if whole else str(tensor)}
    found = {EXPERT: "1"} if expert == 1 and not over else found
    return {key: size for key, size in found.items() if size != "1" or key in current}
