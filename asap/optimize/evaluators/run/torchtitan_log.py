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
_MODE = "activation_checkpoint.mode"
_DEGREE = re.compile(r"\b([a-z_]{2,12})=(\d{1,9})\b")
_RECOMPUTATION = re.compile(r"\bApplied (\w{1,40}) activation checkpointing")
_IS_BUILT = "Trainer is initialized with"


class TorchtitanLog:
    """Reads the settings as the log says them; that nothing is recomputed it says by silence."""

    def __init__(self) -> None:
        self._recomputes = False

    def feed(self, line: str) -> Iterator[tuple[str, str]]:
        """Names and values of the settings that ``line`` says."""
        if found := _RECOMPUTATION.search(line):
            self._recomputes = True
            yield _MODE, found[1]
        if _IS_BUILT in line:
            for pattern, name in _BATCH:
                if found := pattern.search(line):
                    yield name, found[1]
            if not self._recomputes:
                yield _MODE, "none"
        if "Building device mesh with parallelism" in line:
            for axis, degree in _DEGREE.findall(line):
                if axis in _MESH:
                    yield _MESH[axis], degree
