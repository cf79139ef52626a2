"""The facts that limit the plans of a run, with those of the stack that trains it."""

from dataclasses import replace

from asap.models import Architecture, Workload
from asap.plans.validity import EVEN, Constraints, LayerSplit
from asap.stacks.launchers import stack_of
from asap.stacks.registry import by_framework

_COUNTS_LAYERS = ("megatron", "nemo", "bridge")
"""Stacks that say how many layers of a stage are recomputed."""
_UNEVEN_STAGES: dict[str, LayerSplit] = {
    "megatron": LayerSplit(uneven=True, said=True),
    "bridge": LayerSplit(uneven=True, said=True),
    "torchtitan": LayerSplit(uneven=True, virtual=True),
}
"""Stacks that take a last stage with fewer layers: Megatron's core (``num_layers_in_last_pipeline_stage`` of its
``transformer_config.py``), torchtitan (``distributed/pipeline_parallel.py``); those with a table say it there."""


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
        counted_layers=(layers or 0) if stack_of(workload.framework) in _COUNTS_LAYERS else 0,
        sharded_width=_sharded_width(architecture, workload.framework) if architecture else None,
        experts_over=workload.experts_over,
        split=_split(workload),
    )


def _kv_heads(architecture: Architecture) -> int | None:
    """Of MLA there is one latent for all heads, which every device of a model axis holds."""
    return 1 if architecture.is_mla else architecture.kv_heads


def _whole_kv_heads(architecture: Architecture, framework: str | None) -> int:
    """KV heads that tensor parallelism has to divide.

    Of torchtitan (``models/common/decoder.py``, August 2026), stacks whose table says so, and NeMo
    (``TransformerConfig`` of Megatron-Core until 0.15); DeepSpeed leaves devices beyond them without attention
    (``runtime/engine.py``, 0.19).
    """
    table = by_framework(framework)
    repeats = not table.axes.whole_kv_heads if table else stack_of(framework) not in ("torchtitan", "nemo")
    return 0 if repeats or architecture.is_mla else architecture.kv_heads or 0


def _split(workload: Workload) -> LayerSplit:
    """How stages share the layers; Megatron-DeepSpeed has no words for unequal ones."""
    of_deepspeed = (workload.framework or "").casefold() == "megatron-deepspeed"
    table = by_framework(workload.framework)
    of_table = LayerSplit(uneven=True) if table and table.axes.uneven_stages else EVEN
    split = EVEN if of_deepspeed else _UNEVEN_STAGES.get(stack_of(workload.framework), of_table)
    return replace(split, laid_out=workload.laid_out_stages)


def _most_stages(architecture: Architecture, framework: str | None) -> int:
    """Of a pipeline; torchtitan has none for tied embeddings (the same file)."""
    return 1 if stack_of(framework) == "torchtitan" and architecture.tied_embeddings else 0


def _sharded_width(architecture: Architecture, framework: str | None) -> int | None:
    """JAX's stacks shard weights along their width, which has to divide evenly; those of PyTorch pad."""
    table = by_framework(framework)
    of_jax = table.kin == "jax" if table else stack_of(framework) == "maxtext"
    return architecture.d_model if of_jax else 0
