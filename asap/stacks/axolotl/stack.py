"""What of Axolotl no table says: when FSDP shards, and what that does with weights."""

import re
from collections.abc import Iterator, Mapping

from asap.core.text import plain
from asap.stacks.reading import is_on, layout_of
from asap.stacks.registry import spec

Settings = Mapping[str, object]
_VERSIONS = ("fsdp_version", "fsdp_config.fsdp_version", "fsdp_config.version")
_FEW_BITS, _COUNTED_BITS = re.compile(r"(?<!\d)[48]-?bit$"), re.compile(r"adam\w*?_?(32|8|4)bit$")


def workload(settings: Settings) -> dict[str, object]:
    """Weights that stay in the bf16 that they are loaded in.

    Version 1 of FSDP turns weights into fp32 (accelerate's ``prepare_model``), version 2 does not
    (``monkeypatch/accelerate/fsdp2.py``).
    """
    sharded = layout_of(spec("axolotl"), settings) != "replica"
    half = not any(is_on(settings, key) for key in ("fp16", "float16")) and (
        is_on(settings, "fp8") or str(settings.get("bf16", settings.get("bfloat16", "auto"))).casefold() != "false"
    )
    kept = str(settings.get("bf16")) == "full" or (half and not (sharded and _version(settings) != "2"))
    return {"weight_precision": "bf16" if kept else None}


def notes(settings: Settings) -> Iterator[str]:
    """What a reader should know beside the table's notes."""
    optimizer = str(settings.get("optimizer") or "")
    if _FEW_BITS.search(optimizer) and not _COUNTED_BITS.search(optimizer.replace("_bnb_", "_")):
        yield f"optimizer {plain(optimizer, 40)}: the few bits of its state are counted as 32"


def _version(settings: Settings) -> str:
    return next((str(settings[key]) for key in _VERSIONS if settings.get(key) is not None), "1")
