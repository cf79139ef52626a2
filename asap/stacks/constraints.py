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
    model, table = architecture or Architecture(), by_framework(workload.framework)
    known = contract_of(workload.framework)
    layers = workload.pipelined_layers or model.layers
    # DeepSpeed leaves devices beyond the KV heads without attention (runtime/engine.py, 0.19)
    divides = table is not None and table.axes.whole_kv_heads
    return Constraints(
        devices_per_slice=devices_per_slice,
        slices=slices,
        global_batch=workload.global_batch,
        sequence_length=workload.sequence_length,
        heads=model.heads,
        kv_heads=1 if model.is_mla else model.kv_heads,  # of MLA every device of a model axis holds the one latent
        whole_kv_heads=model.kv_heads or 0 if divides and not model.is_mla else 0,
        most_stages=1 if known.tied_in_one_stage and model.tied_embeddings else 0,
        experts=architecture.experts if architecture else None,
        layers=layers,
        counted_layers=(layers or 0) if known.of_core else 0,
        sharded_width=model.d_model if architecture is None or is_of_jax(workload.framework) else 0,  # PyTorch's pad
        experts_over=workload.experts_over,
        split=_split(workload),
    )


def _split(workload: Workload) -> LayerSplit:
    """How stages share the layers; Megatron-DeepSpeed has no words for unequal ones."""
    table, how = by_framework(workload.framework), contract_of(workload.framework).uneven_stages
    uneven = how is not None or (table is not None and table.axes.uneven_stages)
    if (workload.framework or "").casefold() == "megatron-deepspeed" or not uneven:
        return replace(EVEN, laid_out=workload.laid_out_stages)
    return LayerSplit(True, how == "virtual", how == "said", workload.laid_out_stages)
