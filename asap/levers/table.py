"""The tables of levers and of trials, and what differs between two plans beside their meshes."""

from asap.levers import (
    attention_blocks,
    cuda_graphs,
    distributed_optimizer,
    expert_dispatcher,
    fused_attention,
    fused_loss,
    global_batch,
    loss_chunks,
    microbatches,
    mixed_precision,
    optimizer,
    optimizer_offload,
    parameter_offload,
    pipeline_repeats,
    rematerialisation,
    secondary_shards,
    sequence_parallel,
    state_precision,
    tensor_overlap,
    torch_compile,
)
from asap.levers.lever import Lever, Trial
from asap.plans import Plan

LEVERS: tuple[Lever, ...] = (
    rematerialisation.LEVER,
    microbatches.LEVER,
    pipeline_repeats.LEVER,
    optimizer_offload.LEVER,
    parameter_offload.LEVER,
    loss_chunks.LEVER,
    *state_precision.LEVERS,
    optimizer.LEVER,
    global_batch.LEVER,
)

TRIALS: tuple[Trial, ...] = (
    attention_blocks.TRIAL,
    fused_attention.TRIAL,
    mixed_precision.TRIAL,
    torch_compile.TRIAL,
    cuda_graphs.LAYERS,
    cuda_graphs.EXPERTS,
    tensor_overlap.TRIAL,
    distributed_optimizer.TRIAL,
    sequence_parallel.TRIAL,
    secondary_shards.TRIAL,
    fused_loss.TRIAL,
    expert_dispatcher.EXCHANGED,
    expert_dispatcher.TRIAL,
)

ON_REQUEST = tuple(lever.name for lever in LEVERS if lever.on_request)
"""What a user has to allow by name."""


def changed_levers(plan: Plan, other: Plan) -> tuple[Lever, ...]:
    """Levers that two plans have set differently."""
    return tuple(lever for lever in LEVERS if lever.read(plan) != lever.read(other))
