"""Settings of torchtitan of 2024 and early 2025 under today's names, and back (``torchtitan/config_manager.py``).

Degrees stood in ``[training]`` and ``[experimental]`` until February 2025, the local batch was ``training.batch_size``
until June 2025, and a pipeline counted its microbatches. Gradients were not accumulated.
"""

from collections.abc import Mapping

from asap.core.errors import PlanError
from asap.plans.degrees import degree
from asap.plans.torchtitan.token_batches import GLOBAL_BATCH, LOCAL_BATCH, PIPELINE, STAGE_BATCH

_BATCH, _TYPE = "training.batch_size", "training.data_parallel_type"
_FIRST = "training.data_parallel_degree"
_SHARD, _REPLICATE = "parallelism.data_parallel_shard_degree", "parallelism.data_parallel_replicate_degree"
_CONTEXT = "parallelism.context_parallel_degree"
_OF_SECTIONS = {
    _FIRST: _SHARD,
    "training.data_parallel_shard_degree": _SHARD,
    "training.data_parallel_replicate_degree": _REPLICATE,
    "training.tensor_parallel_degree": "parallelism.tensor_parallel_degree",
    "experimental.pipeline_parallel_degree": PIPELINE,
    "experimental.context_parallel_degree": _CONTEXT,
    "experimental.pipeline_parallel_schedule": "parallelism.pipeline_parallel_schedule",
}
_SECTION = "parallelism."
_COUNTS = ("experimental.pipeline_parallel_microbatches", "parallelism.pipeline_parallel_microbatches")
EARLIER = frozenset((_BATCH, *_OF_SECTIONS, *_COUNTS, _TYPE))
_LATER = (GLOBAL_BATCH, "training.enable_cpu_offload", "training.dtype")
_LOCAL_BATCH_DEFAULT = 8


def in_names_of_today(settings: Mapping[str, object]) -> Mapping[str, object]:
    """The settings with those of earlier versions under today's names.

    Raises:
        PlanError: a number is none, or replicas are all that data parallelism makes.
    """
    if not _is_earlier(settings):
        return settings
    if str(settings.get(_TYPE, "fsdp")).casefold() != "fsdp":
        raise PlanError(f"{_TYPE} other than fsdp is not read", hint="say the plan with --plan")
    said = {today: settings[key] for key, today in _OF_SECTIONS.items() if key in settings}
    said |= {LOCAL_BATCH: settings[_BATCH]} if _BATCH in settings else {}
    stages = degree({**settings, **said}, PIPELINE)
    if stages > 1:
        said[STAGE_BATCH] = max(degree(said, LOCAL_BATCH, _LOCAL_BATCH_DEFAULT) // _count(settings, stages), 1)
    return {**settings, **said}


def in_earlier_names(changed: Mapping[str, str], settings: Mapping[str, object]) -> dict[str, str]:
    """Settings that change, under the names that the settings as they are have.

    Raises:
        PlanError: their version has none for one of them.
    """
    if not _is_earlier(settings):
        return dict(changed)
    of_sections = any(key in settings for key in _OF_SECTIONS)
    missing = {*_LATER, *((_REPLICATE, _CONTEXT) if _FIRST in settings else ())}
    if of_sections:
        kept = {STAGE_BATCH, *_OF_SECTIONS.values(), *settings}
        missing |= {key for key in changed if key.startswith(_SECTION) and key not in kept}
    if unsaid := next((key for key in changed if key in missing), None):
        sign = min(EARLIER & settings.keys())
        raise PlanError(f"a version of torchtitan that has {sign} has no {unsaid}", hint="a later version has it")
    names = {today: key for key, today in _OF_SECTIONS.items() if key != _FIRST or key in settings}
    found = {
        _BATCH if key == LOCAL_BATCH else names.get(key, key) if of_sections else key: value
        for key, value in changed.items()
        if key != STAGE_BATCH
    }
    return found | _counted(changed, settings, _COUNTS[0 if of_sections else 1])


def _counted(changed: Mapping[str, str], settings: Mapping[str, object], key: str) -> dict[str, str]:
    """The number of microbatches of a pipeline, where it changes."""
    new = {**in_names_of_today(settings), **changed}
    stages = degree(new, PIPELINE)
    if stages == 1:
        return {}
    count = degree(new, LOCAL_BATCH, _LOCAL_BATCH_DEFAULT) // degree(new, STAGE_BATCH)
    return {} if count == _count(settings, stages) else {key: str(count)}


def _count(settings: Mapping[str, object], stages: int) -> int:
    """Microbatches of a pipeline, by default one a stage."""
    return next((degree(settings, key) for key in _COUNTS if key in settings), stages)


def _is_earlier(settings: Mapping[str, object]) -> bool:
    return LOCAL_BATCH not in settings and bool(EARLIER & settings.keys())
