"""The workload that MaxText settings describe: batch, sequence, precision, optimizer."""

import math
from typing import cast

from asap.core.errors import ConfigError
from asap.core.units import exact
from asap.experiments.files.documents import Document, blamed_on, validated
from asap.experiments.maxtext.settings import TABLE, MaxTextSettings
from asap.models import Architecture, Workload
from asap.models.parameters import linear_attention_parameters
from asap.models.workload import ContextParallel
from asap.stacks.maxtext.axes import axis_key
from asap.stacks.maxtext.pipeline import LAYERS
from asap.stacks.reading import field_of
from asap.stacks.spec import word_keys


def workload_of(
    settings: MaxTextSettings,
    document: Document,
    model: Architecture,
    devices: int | None,
    pipelined_layers: int | None,
) -> tuple[Workload, dict[str, str], tuple[str, ...]]:
    """The workload, where its fields came from, and notes.

    Only gradients of fp32 weights are cast to ``grad_dtype`` (MaxText's trainers/pre_train/train.py).

    Raises:
        ConfigError: a value that is of the wrong kind, or that MaxText refuses.
    """
    batch, notes = _global_batch(settings, document, devices)
    parallel_keys = [axis_key(network, "tensor_sequence") for network in ("ici", "dcn")]
    with blamed_on(str(document.path)):
        found = {field: field_of(TABLE, field, settings) for field in TABLE.workload}
        found["sequence_length"] = settings.positive("max_target_length")
        weights = found["weight_precision"]
        if weights in (found["gradient_precision"], "bf16", "fp16"):
            found["gradient_precision"] = None
        if weights == found["first_moment_precision"]:
            found["first_moment_precision"] = None
        found |= {
            "global_batch": batch,
            "framework": TABLE.framework,
            "pipelined_layers": pipelined_layers,
            "zero_stage": 1 if settings.flag("shard_optimizer_over_data") else None,
            "context_parallel": _context_parallel(settings),
            "capacity_factor": _capacity_factor(settings, model),
            "sequence_parallel": True if any((settings.whole(key) or 1) > 1 for key in parallel_keys) else None,
        }
    workload = validated(Workload, found, str(document.path))
    said = {field: next(filter(settings.text, word_keys(words)), None) for field, words in TABLE.workload.items()}
    sources = {
        f"workload.{field}": settings.source(key or word_keys(TABLE.workload[field])[0]) for field, key in said.items()
    }
    sources["workload.framework"] = document.path.name
    if workload.pipelined_layers:
        sources["workload.pipelined_layers"] = settings.source(LAYERS)
    if batch is not None:
        parts = [settings.source("per_device_batch_size"), settings.source("gradient_accumulation_steps")]
        sources["workload.global_batch"] = f"derived: {parts[0]} x {devices} devices x {parts[1]}"
    return workload, sources, notes


def _context_parallel(settings: MaxTextSettings) -> ContextParallel | None:
    """``None`` without context parallelism; MaxText's configs/types.py has these two."""
    keys = [axis_key(network, "context") for network in ("ici", "dcn")]
    if all((settings.whole(key) or 1) == 1 for key in keys):
        return None
    return cast(ContextParallel, settings.choice("context_parallel_strategy", ("all_gather", "ring")))


def _capacity_factor(settings: MaxTextSettings, model: Architecture) -> float | None:
    """Of MaxText's ``dense_matmul`` (layers/moe.py): without a factor every expert computes every token."""
    if settings.flag("sparse_matmul") or not model.is_moe:
        return None
    factor = settings.number("capacity_factor") or 0.0
    return factor if factor > 0 else model.experts / model.experts_per_token


def _global_batch(
    settings: MaxTextSettings, document: Document, devices: int | None
) -> tuple[int | None, tuple[str, ...]]:
    """Sequences in a step, by MaxText's rule ``int(devices * per_device_batch_size) * accumulation``."""
    per_device = settings.number("per_device_batch_size")
    if devices is None or per_device is None:
        return None, ("the global batch is unknown: MaxText states it per device, and their number is not known",)
    micro = devices * per_device
    if not 1 <= micro < math.inf:
        reason = f"per_device_batch_size {per_device} gives less than one sequence on {devices} devices"
        raise ConfigError(reason, where=document.place("per_device_batch_size"))
    notes = () if micro == int(micro) else (f"MaxText cuts {exact(micro)} sequences a step to {int(micro)}",)
    return int(micro) * (settings.positive("gradient_accumulation_steps") or 1), notes


_GLOBAL_EVERY = {"gemma4": 6, "qwen3_next": 4, "qwen3_5": 4}


def mean_attention_parameters(settings: MaxTextSettings) -> int | None:
    """Parameters of attention in a layer, averaged over local and global ones; ``None`` where all are alike."""
    block = settings.text("decoder_block") or ""
    every = _GLOBAL_EVERY.get(block)
    layers = settings.positive("base_num_decoder_layers")
    if every is None or layers is None:
        return None
    local, full = (_gemma4 if block == "gemma4" else _linear)(settings)
    return round((local * (layers - layers // every) + full * (layers // every)) / layers)


def _gemma4(settings: MaxTextSettings) -> tuple[int, int]:
    width, heads = settings.positive("base_emb_dim") or 0, settings.positive("base_num_query_heads") or 0
    kv_heads, dim = settings.positive("base_num_kv_heads") or 0, settings.positive("head_dim") or 0
    global_kv = settings.positive("global_num_kv_heads") or kv_heads
    global_dim = settings.positive("global_head_dim") or dim
    shared = 1 if settings.flag("share_kv_projections") else 2
    return width * dim * (2 * heads + 2 * kv_heads), width * global_dim * (2 * heads + shared * global_kv)


def _linear(settings: MaxTextSettings) -> tuple[int, int]:
    width, heads = settings.positive("base_emb_dim") or 0, settings.positive("base_num_query_heads") or 0
    kv_heads, dim = settings.positive("base_num_kv_heads") or 0, settings.positive("head_dim") or 0
    key_heads, value_heads = settings.positive("gdn_num_key_heads") or 0, settings.positive("gdn_num_value_heads") or 0
    linear = linear_attention_parameters(
        width, key_heads, settings.positive("gdn_key_head_dim") or 0, value_heads,
        settings.positive("gdn_value_head_dim") or 0, settings.positive("gdn_conv_kernel_dim") or 0,
    )  # fmt: skip
    return linear, width * dim * (3 * heads + 2 * kv_heads)
