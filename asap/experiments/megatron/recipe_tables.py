"""What recipes of Megatron-Bridge say, by their names, read out of the library's releases (``bridge/recipes.jsonl``:
``src/megatron/bridge/recipes``).

A line has the recipe, the releases that have it, what all of them say (``settings``, in Megatron-LM's arguments), and
what differs between them (``differs``), which is asked for.
"""

import json
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

from asap.core.text import plain
from asap.experiments.megatron.yaml_dialects import BRIDGE

_FILE = "bridge/recipes.jsonl"

PARAMETERS = {
    "tensor_parallelism": "tensor_model_parallel_size", "pipeline_parallelism": "pipeline_model_parallel_size",
    "context_parallelism": "context_parallel_size", "sequence_parallelism": "sequence_parallel",
    "expert_parallelism": "expert_model_parallel_size", "global_batch_size": "global_batch_size",
    "micro_batch_size": "micro_batch_size", "seq_length": "seq_length",
    "virtual_pipeline_parallelism": "num_virtual_stages_per_pipeline_rank",
}  # fmt: skip
"""What functions of recipes take in Megatron-Bridge 0.1."""


def recipe_settings(recipe: str) -> tuple[dict[str, Any], tuple[str, ...]]:
    """The arguments that a recipe sets, with a note on where they are from; none where it is not known."""
    known = _table().get(recipe)
    if known is None:
        return {}, ()
    settings = dict(known["settings"])
    where = f"what {plain(recipe, 80)} does not change is that of {BRIDGE} {known['releases']}"
    return settings, (where,) if settings else ()


@cache
def _table() -> Mapping[str, Mapping[str, Any]]:
    text = (Path(__file__).parent / _FILE).read_text(encoding="utf-8")
    entries = [json.loads(line) for line in text.splitlines()]
    return {entry["recipe"]: entry for entry in entries}
