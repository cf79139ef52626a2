"""The settings that torchtitan's log says in sentences.

Source: torchtitan, train.py, distributed/parallel_dims.py and distributed/activation_checkpoint.py.
"""

import re
from collections.abc import Iterator

_BATCH = (
    (re.compile(r"\blocal batch size (\d{1,12}),"), "training.local_batch_size"),
    (re.compile(r"\bglobal batch size (\d{1,12}),"), "training.global_batch_size"),
    (re.compile(r"\bsequence length (\d{1,12}),"), "training.seq_len"),
    (re.compile(r"\b(\d{1,15}) tokens per train step,"), "training.num_tokens_per_train_step"),
)
_MESH = {
    "pp": "parallelism.pipeline_parallel_degree",
    "dp_replicate": "parallelism.data_parallel_replicate_degree",
    "dp_shard": "parallelism.data_parallel_shard_degree",
    "cp": "parallelism.context_parallel_degree",
    "tp": "parallelism.tensor_parallel_degree",
    "ep": "parallelism.expert_parallel_degree",
    "etp": "parallelism.expert_tensor_parallel_degree",
}
_DEGREE = re.compile(r"\b([a-z_]{2,12})=(\d{1,9})\b")
_RECOMPUTATION = re.compile(r"\bApplied (none|full|selective|memory_budget) activation checkpointing")


def said_settings(line: str) -> Iterator[tuple[str, str]]:
    """Names and values of the settings that ``line`` says."""
    if "Trainer is initialized with" in line:
        for pattern, name in _BATCH:
            if found := pattern.search(line):
                yield name, found[1]
    if "Building device mesh with parallelism" in line:
        for axis, degree in _DEGREE.findall(line):
            if axis in _MESH:
                yield _MESH[axis], degree
    if found := _RECOMPUTATION.search(line):
        yield "activation_checkpoint.mode", found[1]
