"""The facts that limit the plans of a run, with those of the stack that trains it."""

from dataclasses import replace

from asap.models import Architecture, Workload
from asap.plans.validity import EVEN, Constraints, LayerSplit
from asap.stacks.launchers import contract_of, is_of_jax
from asap.stacks.registry import by_framework


def constraints_of(
    architecture: Architecture | None, workload: Workload, devices_per_slice: int | None, slices: int | None = 1
) -> Constraints:
    """What is known of a run."""
    layers = workload.pipelined_layers or (architecture.layers if architecture else None)
    return Constraints(
        devices_per_slice=devices_per_slice,
        slices=slices,
        global_batch=workload.global_batch,
        sequence_length=workload.sequence_length,
        heads=architecture.heads if architecture else None,
        kv_heads=_kv_heads(architecture) if architecture else None,
        whole_kv_heads=_whole_kv_heads(architecture, workload.framework) if architecture else 0,
        most_stages=_most_stages(architecture, workload.framework) if architecture else 0,
        experts=architecture.experts if architecture else None,
        layers=layers,
        counted_layers=(layers or 0) if contract_of(workload.framework).of_core else 0,
        sharded_width=_sharded_width(architecture, workload.framework) if architecture else None,
        experts_over=workload.experts_over,
        split=_split(workload),
    )


def _kv_heads(architecture: Architecture) -> int | None:
    """Of MLA there is one latent for all heads, which every device of a model axis holds."""
    return 1 if architecture.is_mla else architecture.kv_heads


def _whole_kv_heads(architecture: Architecture, framework: str | None) -> int:
    """KV heads that tensor parallelism has to divide; DeepSpeed leaves devices beyond them without attention
    (``runtime/engine.py``, 0.19)."""
    table = by_framework(framework)
    divides = table.axes.whole_kv_heads if table else contract_of(framework).whole_kv_heads
    return 0 if architecture.is_mla or not divides else architecture.kv_heads or 0


def _split(workload: Workload) -> LayerSplit:
    """How stages share the layers; Megatron-DeepSpeed has no words for unequal ones."""
    table, how = by_framework(workload.framework), contract_of(workload.framework).uneven_stages
    uneven = how is not None or (table is not None and table.axes.uneven_stages)
    if (workload.framework or "").casefold() == "megatron-deepspeed" or not uneven:
        return replace(EVEN, laid_out=workload.laid_out_stages)
    return LayerSplit(True, how == "virtual", how == "said", workload.laid_out_stages)


def _most_stages(architecture: Architecture, framework: str | None) -> int:
    """Of a pipeline; some have none for tied embeddings."""
    return 1 if contract_of(framework).tied_in_one_stage and architecture.tied_embeddings else 0


def _sharded_width(architecture: Architecture, framework: str | None) -> int | None:
    """JAX's stacks shard weights along their width, which has to divide evenly; those of PyTorch pad."""
    return architecture.d_model if is_of_jax(framework) else 0
