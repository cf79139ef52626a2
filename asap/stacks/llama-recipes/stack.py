"""What of llama-recipes no table says: what FSDP turns on (``configs/training.py``)."""

from collections.abc import Mapping

from asap.stacks.reading import is_on

Settings = Mapping[str, object]


def prepared(settings: Settings, devices: int | None = None) -> dict[str, object]:
    """The settings with recomputation under FSDP alone; raises ValueError where processes train apart."""
    if is_on(settings, "enable_fsdp"):
        return dict(settings)
    if (devices or 1) > 1 or str(settings.get("sharding_group_size", 1)) != "1":
        raise ValueError(
            "several processes without --enable_fsdp: each trains a model of its own; add enable_fsdp=true"
        )
    return {**settings, "fsdp_activation_checkpointing": "false", "sharding_strategy": "NO_SHARD"}
