"""What of Axolotl no table says: when FSDP shards, plugins, and plans that it refuses (``utils/schemas/validation.py``,
``docs/nd_parallelism.qmd``), or Accelerate for it (``parallelism_config.py``)."""

import re
from collections.abc import Iterator, Mapping
from typing import Any, Literal

from asap.core.text import plain
from asap.stacks.accelerate.stack import of_units
from asap.stacks.reading import is_on

Settings = Mapping[str, object]
_VERSIONS = ("fsdp_version", "fsdp_config.fsdp_version", "fsdp_config.version")
_SYNCS = "accelerator_config.gradient_accumulation_kwargs.sync_each_batch"
_FLASH = ("flash_attention_2", "flash_attention_3", "kernels-community/flash-attn2", "kernels-community/flash-attn3")
_IN_8_BITS = ("paged_adamw_8bit", "adamw_8bit", "adamw_bnb_8bit")
_FEW_BITS, _COUNTED_BITS = re.compile(r"(?<!\d)[48]-?bit$"), re.compile(r"adam\w*?_?(32|8|4)bit$")


def prepared(settings: Settings, _: int | None = None) -> dict[str, object]:
    """The settings with offloading as a switch of its own, which goes with recomputation alone."""
    recomputes = str(settings.get("gradient_checkpointing")).casefold()
    on = recomputes not in ("none", "false", "no") or _of_fsdp(settings, "activation_checkpointing") == "true"
    moves = settings.get("activation_offloading") or recomputes in ("offload", "offload_disk")
    return {**settings, "activation_offloading": moves if on else False} if moves else dict(settings)


def layout(settings: Settings) -> Literal["data", "replica", "hybrid"]:
    """What FSDP does with parameters; without it each device, or group of them, has a copy."""
    strategy = _of_fsdp(settings, "sharding_strategy").upper()
    if not (settings.get("fsdp") or any(key.startswith("fsdp_config.") for key in settings)) or strategy == "NO_SHARD":
        return "replica"
    return "hybrid" if strategy.startswith("HYBRID") else "data"


def workload(settings: Settings) -> dict[str, object]:
    """Weights that stay in the bf16 that they are loaded in, and when gradients are scattered.

    Version 1 of FSDP turns weights into fp32 (accelerate's ``prepare_model``), version 2 does not
    (``monkeypatch/accelerate/fsdp2.py``).
    """
    sharded = layout(settings) != "replica"
    half = not any(is_on(settings, key) for key in ("fp16", "float16")) and (
        is_on(settings, "fp8") or str(settings.get("bf16", settings.get("bfloat16", "auto"))).casefold() != "false"
    )
    kept = str(settings.get("bf16")) == "full" or (half and not (sharded and _version(settings) != "2"))
    gathered = _of_fsdp(settings, "sharding_strategy").upper() == "SHARD_GRAD_OP"
    stays = gathered or _of_fsdp(settings, "reshard_after_forward") == "false"
    return {
        "weight_precision": "bf16" if kept else None,
        "sync_each_batch": is_on(settings, _SYNCS) if sharded and _SYNCS in settings else None,
    } | (of_units(_of_fsdp(settings, "auto_wrap_policy").upper(), stays) if sharded else {})


def notes(settings: Settings) -> Iterator[str]:
    """What a reader should know beside the table's notes."""
    optimizer = str(settings.get("optimizer") or "")
    if _FEW_BITS.search(optimizer) and not _COUNTED_BITS.search(optimizer.replace("_bnb_", "_")):
        yield f"optimizer {plain(optimizer, 40)}: the few bits of its state are counted as 32"


def refusals(settings: Settings, wanted: Mapping[str, Any]) -> Iterator[str]:
    """Why it does not run a plan beside its settings."""
    sharded = layout(settings) != "replica"
    data, replica, context, tensor, expert = (wanted[axis] for axis in ("data", "replica", "seq", "model", "expert"))
    sized = context > 1 or tensor > 1 or (sharded and replica > 1)
    if sharded and data == 1 and replica > 1:
        yield "it replicates all parameters only without fsdp_config"
    if not sharded and data > 1:
        yield "it shards no parameters without fsdp_config"
    if expert > 1 and ("expert_parallel_size" not in settings or tensor > 1):
        yield "expert parallelism goes with its ExpertParallelPlugin alone, and not with tensors split"
    if not sharded and "parameters" in wanted["offload"]:
        yield "parameters and optimizer are offloaded under fsdp_config alone"
    if not sharded and replica > 1 and (context > 1 or tensor > 1):
        yield "replicas go with tensor or context parallelism under FSDP alone"
    if sharded and sized and _version(settings) != "2":
        yield "FSDP goes with other degrees from fsdp_version: 2"
    if sharded and tensor > 1 and context == 1 and data == 1:
        yield "FSDP has nothing to shard beside tensor parallelism over all devices"
    if context > 1 and not _is_flash(settings):
        yield f"context parallelism needs attn_implementation: {_FLASH[0]}"
    if context > 1 and is_on(settings, "sample_packing") and (wanted["each"] or 1) > 1:
        yield "context parallelism takes one sequence at once beside sample_packing"
    if tensor > 1 and str(settings.get("optimizer")).casefold() in _IN_8_BITS:
        yield "tensor parallelism does not go with an optimizer of 8 bits"


def _of_fsdp(settings: Settings, name: str) -> str:
    """A setting of FSDP, which version 1 writes with a prefix; in lower case."""
    said = settings.get(f"fsdp_config.fsdp_{name}", settings.get(f"fsdp_config.{name}"))
    return str(said if said is not None else "").casefold()


def _version(settings: Settings) -> str:
    return next((str(settings[key]) for key in _VERSIONS if settings.get(key) is not None), "1")


def _is_flash(settings: Settings) -> bool:
    said = settings.get("attn_implementation")
    return is_on(settings, "flash_attention") if said is None else str(said) in _FLASH
