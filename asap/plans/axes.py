"""The axes of a plan, and the words that JAX, MaxText, Megatron and torchtitan have for them."""

import re
from collections.abc import Mapping
from typing import Any, Literal

AXES = ("replica", "data", "seq", "model", "expert", "stage")
Axis = Literal["replica", "data", "seq", "model", "expert", "stage"]
Network = Literal["ici", "dcn"]

WORDS: dict[str, Axis] = {
    "replica": "replica", "dp": "replica", "ddp": "replica",
    "data": "data", "fsdp": "data",
    "seq": "seq", "sequence": "seq", "context": "seq", "cp": "seq", "sp": "seq",
    "model": "model", "tensor": "model", "tp": "model",
    "expert": "expert", "experts": "expert", "ep": "expert",
    "stage": "stage", "stages": "stage", "pipeline": "stage", "pp": "stage",
}  # fmt: skip
"""A word for an axis. ``data`` alone means sharded data parallelism (FSDP), as in "How to Scale Your Model"."""

MEANINGS: dict[Axis, str] = {
    "replica": "plain data parallelism",
    "data": "FSDP",
    "seq": "context parallelism",
    "model": "tensor parallelism",
    "expert": "expert parallelism",
    "stage": "pipeline stages",
}

MESH_NAMES: dict[Axis, tuple[str, ...]] = {
    "replica": ("data",),
    "data": ("fsdp", "fsdp_transpose"),
    "seq": ("context", "sequence", "context_usp_ulysses"),
    "model": ("tensor", "tensor_transpose", "tensor_sequence"),
    "expert": ("expert",),
    "stage": ("pipeline",),
}
"""MaxText's names of each axis, of its head and of earlier releases; the first is the one that is written."""

LOGICAL_RULES = "logical_axis_rules"
"""The setting that lays named dimensions of tensors over such axes (flax, ``logical_axis_rules``)."""

KEYS: dict[str, Axis] = {
    "data_parallel_replicate_degree": "replica",
    "data_parallel_shard_degree": "data",
    "context_parallel_size": "seq", "context_parallel_degree": "seq",
    "tensor_model_parallel_size": "model", "tensor_parallel_degree": "model",
    "expert_model_parallel_size": "expert", "expert_parallel_degree": "expert",
    "pipeline_model_parallel_size": "stage", "pipeline_parallel_degree": "stage",
}  # fmt: skip
"""Arguments of Megatron-LM (megatron/training/arguments.py) and torchtitan ([parallelism])."""

_MESH_AXES: dict[str, Axis] = {name: axis for axis, names in MESH_NAMES.items() for name in names}
_MESH_KEY = re.compile(r"(ici|dcn)_(\w+)_parallelism")


def standard_degrees(degrees: Mapping[str, Any]) -> dict[str, Any]:
    """A mesh as a mapping, its words replaced by the axes; a word that is none stays.

    Raises:
        ValueError: two words name the same axis.
    """
    if degrees.keys() <= set(AXES):
        return dict(degrees)
    found: dict[str, Any] = {}
    for word, degree in degrees.items():
        axis = WORDS.get(word.lower(), word)
        axis = "replica" if word == "data" and "fsdp" in degrees else axis
        if axis in found:
            raise ValueError(f"{axis} is given twice, once as {word}")
        found[axis] = degree
    return found


def axis_of(key: str) -> tuple[Network, Axis] | None:
    """The network and the axis that a word or a launcher's setting names.

    ``tp`` → ICI ``model``; ``dcn.fsdp`` → DCN ``data``; ``ici_data_parallelism`` → ICI ``replica``.
    """
    word = key.lower().lstrip("-").replace("-", "_")
    if setting := _MESH_KEY.fullmatch(word):
        axis = _MESH_AXES.get(setting[2])
        return ("dcn" if setting[1] == "dcn" else "ici", axis) if axis else None
    network, _, name = word.rpartition(".")
    axis = WORDS.get(name) or (KEYS.get(name) if not network else None)
    if axis is None or network not in ("", "ici", "dcn"):
        return None
    return "dcn" if network == "dcn" else "ici", axis
