"""What of llama-recipes no table says: what FSDP turns on, and how long its sequences are (``configs/training.py``)."""

from collections.abc import Iterator, Mapping

from asap.stacks.reading import is_on

Settings = Mapping[str, object]
_LENGTH, _PACKS = 4096, "packing"


def prepared(settings: Settings, devices: int | None = None) -> dict[str, object]:
    """The settings with recomputation under FSDP alone; raises ValueError where processes train apart."""
    if is_on(settings, "enable_fsdp"):
        return dict(settings)
    if (devices or 1) > 1 or str(settings.get("sharding_group_size", 1)) != "1":
        raise ValueError(
            "several processes without --enable_fsdp: each trains a model of its own; add enable_fsdp=true"
        )
    return {**settings, "fsdp_activation_checkpointing": "false", "sharding_strategy": "NO_SHARD"}


def workload(settings: Settings) -> dict[str, object]:
    """Precisions, and the length to which sequences are packed; where they are padded, it is that of the data."""
    pure, mixed = is_on(settings, "pure_bf16"), str(settings.get("mixed_precision", True)).casefold() != "false"
    kept = "bf16" if pure and str(settings.get("optimizer")).casefold() == "anyprecision" else None
    said = settings.get("context_length", _LENGTH if "batching_strategy" in settings else None)
    half = "fp16" if is_on(settings, "use_fp16") else None
    return {
        "sequence_length": said if _packs(settings) else None,
        "precision": half or ("bf16" if pure or (mixed and is_on(settings, "enable_fsdp")) else None),
        "first_moment_precision": kept,
        "second_moment_precision": kept,
    }


def notes(settings: Settings) -> Iterator[str]:
    """What a reader should know beside the table's notes."""
    if not is_on(settings, "pure_bf16") and is_on(settings, "enable_fsdp"):
        yield "weights are taken as fp32; releases from 2024 on keep the checkpoint's: add pure_bf16=true if bf16"
    if "context_length" in settings and not _packs(settings):
        yield "context_length counts where sequences are packed, and here they are padded: add --sequence N"


def _packs(settings: Settings) -> bool:
    return str(settings.get("batching_strategy", _PACKS)) == _PACKS
