"""Batches that torchtitan counts in tokens since August 2026, as the sequences that it counted before, and back.

A microbatch of ``num_tokens_per_microbatch_per_dp_rank`` tokens holds sequences of ``max_context_length``; a pipeline
takes ``num_pp_microbatches`` of them before an update (``torchtitan/config/configs.py``, ``torchtitan/trainer.py``).
"""

from collections.abc import Mapping

from asap.core.errors import PlanError
from asap.plans.degrees import degree

LOCAL_BATCH, GLOBAL_BATCH = "training.local_batch_size", "training.global_batch_size"
STAGE_BATCH, PIPELINE = "parallelism.pipeline_parallel_microbatch_size", "parallelism.pipeline_parallel_degree"
SEQUENCE = "training.seq_len"
TOKENS, STEP_TOKENS = "training.num_tokens_per_microbatch_per_dp_rank", "training.num_tokens_per_train_step"
LENGTH, PARTS = "training.max_context_length", "parallelism.num_pp_microbatches"
_LENGTH_DEFAULT = 2048


def in_sequences(settings: Mapping[str, object]) -> Mapping[str, object]:
    """The settings with batches in sequences.

    Raises:
        PlanError: the tokens of a batch are no whole number of sequences.
    """
    if TOKENS not in settings:
        return settings
    each = _sequences(settings, TOKENS)
    staged = degree(settings, PIPELINE) > 1
    said = str(settings.get(STEP_TOKENS, -1)) != "-1"
    return {
        **settings,
        SEQUENCE: degree(settings, LENGTH, _LENGTH_DEFAULT),
        LOCAL_BATCH: each * degree(settings, PARTS) if staged else each,
        STAGE_BATCH: each,
        GLOBAL_BATCH: _sequences(settings, STEP_TOKENS) if said else -1,
    }


def in_tokens(changed: Mapping[str, str], settings: Mapping[str, object]) -> dict[str, str]:
    """Settings that change, with batches in tokens where the settings as they are have them so."""
    batches = (LOCAL_BATCH, STAGE_BATCH, GLOBAL_BATCH)
    if TOKENS not in settings:
        return dict(changed)
    kept = {key: value for key, value in changed.items() if key not in batches}
    if len(kept) == len(changed):
        return kept
    new = {**in_sequences(settings), **changed}
    staged = degree(new, PIPELINE) > 1
    each, length = degree(new, STAGE_BATCH if staged else LOCAL_BATCH), degree(settings, LENGTH, _LENGTH_DEFAULT)
    wanted = {TOKENS: str(each * length)}
    if str(new[GLOBAL_BATCH]) != "-1":
        wanted[STEP_TOKENS] = str(degree(new, GLOBAL_BATCH) * length)
    if staged:
        wanted[PARTS] = str(degree(new, LOCAL_BATCH) // each)
    return kept | {key: value for key, value in wanted.items() if str(settings.get(key)) != value}


def _sequences(settings: Mapping[str, object], key: str) -> int:
    length = degree(settings, LENGTH, _LENGTH_DEFAULT)
    count, rest = divmod(degree(settings, key), length)
    if rest or not count:
        raise PlanError(f"{key}={settings[key]} is no multiple of {LENGTH}={length}")
    return count
