"""Blocks of the attention kernel: queries and keys that it holds on the chip at once."""

from collections.abc import Mapping

from asap.levers.lever import Run, Trial

KEYS = (
    "sa_block_q", "sa_block_kv", "sa_block_kv_compute", "sa_block_q_dkv", "sa_block_kv_dkv", "sa_block_kv_dkv_compute",
    "sa_block_q_dq", "sa_block_kv_dq",
)  # fmt: skip
DEFAULT = 512
"""In MaxText's configs/base.yml."""
LARGEST = {"v5p": 2048, "v6e": 2048, "tpu7x": 2048}
"""Chip → tokens of a block in published recipes."""
_KERNELS = (None, "autoselected", "flash")


def _settings(run: Run) -> Mapping[str, str]:
    block = min(LARGEST.get(run.chip, 0), run.workload.sequence_length or 0)
    said = [str(run.settings.get(key, DEFAULT)) for key in KEYS]
    if run.stack != "maxtext" or run.workload.attention not in _KERNELS or any(word != str(DEFAULT) for word in said):
        return {}
    return dict.fromkeys(KEYS, str(block)) if block > DEFAULT else {}


TRIAL = Trial(
    name="attention_blocks",
    title="larger blocks of attention",
    changes="time: of attention alone; HBM: none; numerics: none but the order of sums",
    reason="recipes for this chip set 1024 to 2048 tokens where MaxText's default is 512",
    source="https://github.com/AI-Hypercomputer/tpu-recipes",
    settings=_settings,
    at_most="remove:attention",
)
