"""Arguments on record that hold under some plans alone, and are left out under others
(``megatron/training/arguments.py``, ``core/transformer/transformer_config.py``)."""

from collections.abc import Mapping

from asap.plans.megatron.requirements import OVERLAPPED_EXPERTS, is_set
from asap.plans.megatron.unequal_stages import FIRST_AND_LAST
from asap.plans.plan import Plan
from asap.plans.remat import recomputes_layers

_COUNTED = ("account_for_embedding_in_pipeline_split", "account_for_loss_in_pipeline_split")
OVERLAP = (OVERLAPPED_EXPERTS, "delay_wgrad_compute")
_OF_STAGES = ("pipeline_model_parallel_size", "num_virtual_stages_per_pipeline_rank")
FSDP, CHECKPOINTS, _OF_FSDP, _USUAL = "use_megatron_fsdp", "ckpt_format", "fsdp_dtensor", "torch_dist"
_CONNECTIONS = "CUDA_DEVICE_MAX_CONNECTIONS"
_EACH = "num_layers_per_virtual_pipeline_stage"
_SEQUENCE = "sequence_parallel"
_EXPERT = "expert_model_parallel_size"


def counted_layers(current: Mapping[str, object], layers: int | None) -> int | None:
    """Layers that a pipeline divides: the embedding and the loss are one each, where they are counted."""
    return None if layers is None else layers + sum(is_set(current, key) for key in _COUNTED)


def still_counted(plan: Plan, current: Mapping[str, object], layers: int | None) -> bool:
    """Whether the embedding and the loss stay counted as layers under a plan, whose stages then divide them all."""
    every = counted_layers(current, layers)
    return bool(every) and plan.degree("stage") > 1 and every % (plan.degree("stage") * plan.pipeline_repeats) == 0


def invalidated(
    plan: Plan,
    changed: Mapping[str, str | bool],
    wanted: Mapping[str, str | bool],
    current: Mapping[str, object],
    layers: int | None = None,
) -> dict[str, str | bool]:
    """Arguments on record that Megatron-LM refuses under a plan, to be left out.

    Args:
        plan: what to run.
        changed: arguments that change for it.
        wanted: all arguments that say it.
        current: those on record.
        layers: decoder layers.
    """
    split, in_rounds = plan.degree("model") > 1, plan.degree("stage") == 1 or plan.pipeline_repeats > 1
    overlaps = str(wanted.get(_EXPERT, 1)) != "1" and not recomputes_layers(plan.remat) and in_rounds
    moved = any(key in changed for key in (*_OF_STAGES, _EACH))
    found = [key for key in FIRST_AND_LAST if key not in wanted] if moved else []
    found += [] if not moved or still_counted(plan, current, layers) else _COUNTED
    found += [] if overlaps else OVERLAP
    found += [] if split else ["tp_comm_overlap"]
    if not split or not (plan.remat is None or recomputes_layers(plan.remat)):
        found.append("distribute_saved_activations")
    if plan.degree("stage") == 1 or plan.pipeline_repeats == 1:
        found.append("overlap_param_gather_with_optimizer_step")
    return {key: False for key in found if is_set(current, key)}


def unsplit(plan: Plan, current: Mapping[str, object]) -> dict[str, bool]:
    """Sequence parallelism, to be left out without tensor parallelism; Megatron-LM does so itself, NeMo does not."""
    return {_SEQUENCE: False} if plan.degree("model") == 1 and is_set(current, _SEQUENCE) else {}


def checkpoints(wanted: Mapping[str, str | bool], current: Mapping[str, object]) -> dict[str, str | bool]:
    """The format of checkpoints, of which Megatron-FSDP takes one alone, and nothing else takes that one."""
    shards = wanted.get(FSDP, is_set(current, FSDP))
    if shards and current.get(CHECKPOINTS) != _OF_FSDP:
        return {CHECKPOINTS: _OF_FSDP}
    return {CHECKPOINTS: _USUAL} if not shards and current.get(CHECKPOINTS) == _OF_FSDP else {}


def connections(changed: Mapping[str, str | bool]) -> str:
    """What Megatron-FSDP needs of the environment, as a comment of a shell."""
    return f"  # with {_CONNECTIONS} other than 1" if changed.get(FSDP) is True else ""
