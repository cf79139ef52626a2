"""What of Axolotl no table says: what FSDP does with weights."""

from collections.abc import Mapping

from asap.stacks.reading import is_on, layout_of
from asap.stacks.registry import spec

Settings = Mapping[str, object]
_VERSIONS = ("fsdp_version", "fsdp_config.fsdp_version", "fsdp_config.version")


def workload(settings: Settings) -> dict[str, object]:
    """Weights that stay in the bf16 that they are loaded in.

    Version 1 of FSDP turns weights into fp32 (accelerate's ``prepare_model``), version 2 does not
    (``monkeypatch/accelerate/fsdp2.py``).
    """
    sharded = layout_of(spec("axolotl"), settings) != "replica"
    half = not any(is_on(settings, key) for key in ("fp16", "float16")) and (
        is_on(settings, "fp8") or str(settings.get("bf16", settings.get("bfloat16", "auto"))).casefold() != "false"
    )
    version = next((str(settings[key]) for key in _VERSIONS if settings.get(key) is not None), "1")
    kept = str(settings.get("bf16")) == "full" or (half and not (sharded and version != "2"))
    return {"weight_precision": "bf16" if kept else None}
