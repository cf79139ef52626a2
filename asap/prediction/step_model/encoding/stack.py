"""What a training stack does of itself."""

import re

from asap.models import Architecture, Workload
from asap.models.architecture import pattern_length
from asap.prediction.step_model.groups import framework_class

GATHERS_LOGITS = ("aa-scaling",)
"""Stacks that gather logits for the loss, and keep gathered activations (Aleph-Alpha/scaling, transformer/model)."""
_TRAINER_FSDP = ("accelerate fsdp", "axolotl fsdp")
"""Frameworks whose loop is Hugging Face's Trainer, on FSDP."""


def accumulates_whole(workload: Workload) -> bool:
    """Whether gradients stay whole between microbatches: the Trainer scatters them in the last alone."""
    return (workload.framework or "").casefold() in _TRAINER_FSDP and workload.sync_each_batch is not True


def is_xla(workload: Workload) -> bool:
    """Whether XLA compiles the step."""
    return framework_class(workload.framework) in ("jax", "maxtext")


def scans_layers(workload: Workload) -> bool:
    """Whether XLA runs the layers as a loop."""
    return is_xla(workload) and workload.scan_layers is not False


def layers_together(workload: Workload, architecture: Architecture) -> int:
    """Of MaxText, whose scan repeats a pattern of layers as one module under one policy (its models/gemma3.py)."""
    return pattern_length(architecture) if scans_layers(workload) else 1


def has_fused_norm(w: Workload) -> bool:
    """Whether RMS norms are one kernel each, as in XLA, Transformer Engine and Apex, on which Megatron stands."""
    apex = framework_class(w.framework) == "megatron" and not gathers_logits(w)
    return apex or "rms" in (w.attention or "").casefold()


def reduces_in_buckets(w: Workload) -> bool:
    """Whether replicas are PyTorch's DistributedDataParallel."""
    return re.search(r"nanotron|\bddp\b", (w.framework or "").casefold()) is not None


def gathers_logits(w: Workload) -> bool:
    """Whether the stack gathers logits for the loss and keeps gathered activations."""
    return (w.framework or "").casefold().startswith(GATHERS_LOGITS)
