"""What recipes of Megatron-Bridge say, by their names: ``bridge_recipes.jsonl``, read out of the library's releases.

A line has the recipe, the releases that have it, what all of them say (``settings``, in Megatron-LM's arguments), and
what differs between them (``differs``), which is asked for.
"""

import json
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

from asap.core.text import plain

_FILE = Path(__file__).parent / "bridge_recipes.jsonl"
_NOT_OF_MODEL = frozenset(
    [
        "global_batch_size", "micro_batch_size", "use_distributed_optimizer", "use_megatron_fsdp", "optimizer",
        "data_parallel_sharding_strategy", "bf16", "fp16", "fp8_format", "fp4_format", "grad_reduce_in_fp32",
        "grad_reduce_in_bf16", "use_precision_aware_optimizer", "exp_avg_dtype", "exp_avg_sq_dtype",
    ]
)  # fmt: skip


def recipe_settings(recipe: str, *, own_model: bool) -> tuple[dict[str, Any], tuple[str, ...]]:
    """The arguments that a recipe sets, with a note on where they are from; none where it is not known.

    Args:
        recipe: its name.
        own_model: whether a program puts another model in its place, whose degrees are the library's defaults.
    """
    known = _table().get(recipe)
    if known is None:
        return {}, ()
    settings = {k: v for k, v in known["settings"].items() if not own_model or k in _NOT_OF_MODEL}
    where = f"what {plain(recipe, 80)} does not change is that of Megatron-Bridge {known['releases']}"
    return settings, (where,) if settings else ()


@cache
def _table() -> Mapping[str, Mapping[str, Any]]:
    entries = [json.loads(line) for line in _FILE.read_text(encoding="utf-8").splitlines()]
    return {entry["recipe"]: entry for entry in entries}
