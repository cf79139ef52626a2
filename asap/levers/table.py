"""The tables of levers and of trials, and what differs between two plans beside their meshes."""

from asap.levers import batch, kernels, rematerialisation, sharding, state, waits
from asap.levers.lever import Lever, Trial
from asap.plans import Plan

LEVERS: tuple[Lever, ...] = (
    rematerialisation.LEVER,
    batch.MICROBATCHES,
    batch.PIPELINE_REPEATS,
    sharding.SEQUENCE_PARALLEL,
    state.OFFLOAD,
    batch.LOSS_CHUNKS,
    *state.PRECISIONS,
    state.OPTIMIZER,
    batch.GLOBAL_BATCH,
)

TRIALS: tuple[Trial, ...] = (
    kernels.ATTENTION_BLOCKS,
    kernels.FUSED_ATTENTION,
    kernels.MIXED_PRECISION,
    kernels.TORCH_COMPILE,
    waits.GRAPHS_OF_LAYERS,
    waits.GRAPHS_OF_EXPERTS,
    waits.TENSOR_OVERLAP,
    sharding.DISTRIBUTED_OPTIMIZER,
    sharding.SECONDARY_SHARDS,
    kernels.FUSED_LOSS,
    waits.TOKEN_EXCHANGE,
    waits.EXPERT_DISPATCHER,
)

ON_REQUEST = tuple(lever.name for lever in LEVERS if lever.on_request)
"""What a user has to allow by name."""


def changed_levers(plan: Plan, other: Plan) -> tuple[Lever, ...]:
    """Levers that two plans have set differently."""
    return tuple(lever for lever in LEVERS if lever.read(plan) != lever.read(other))
