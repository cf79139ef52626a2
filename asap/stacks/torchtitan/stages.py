"""torchtitan's stages and batches, also those counted in tokens, and what its releases call them."""

from collections.abc import Mapping

from asap.core.errors import PlanError
from asap.plans.degrees import degree
from asap.plans.plan import Plan
from asap.stacks.registry import abstract

SCHEDULE, SCHEDULE_DEFAULT = "parallelism.pipeline_parallel_schedule", "1F1B"
LAYERS_EACH = "parallelism.pipeline_parallel_layers_per_stage"
AS_LAYERS = tuple(f"parallelism.pipeline_parallel_{end}_stage_less_layers" for end in ("first", "last"))
_AS_LAYERS_DEFAULT = 1
_LOOPED = ("interleaved1f1b", "loopedbfs", "zbvzerobubble", "dualpipev", "interleavedzerobubble")
_STAGES_OF_LOOPED = 2


def repeats_of(settings: Mapping[str, object], stages: int, layers: int | None) -> int:
    """Virtual stages that each stage has under the settings."""
    if stages == 1 or not _is_looped(settings):
        return 1
    if settings.get(LAYERS_EACH) is None or layers is None:
        return _STAGES_OF_LOOPED
    return max(_virtual(layers + _as_layers(settings), degree(settings, LAYERS_EACH)) // stages, 1)


def stage_settings(plan: Plan, current: Mapping[str, object], layers: int | None) -> dict[str, str]:
    """Settings of a plan's stages on top of those that are.

    Raises:
        PlanError: torchtitan cannot split the layers so, or the schedule does not take the microbatches.
    """
    stages, repeats = plan.degree("stage"), plan.pipeline_repeats
    if stages == 1:
        return {}
    if repeats == 1:
        if plan.microbatches is not None and plan.microbatches < stages:
            raise PlanError(f"{plan.microbatches} microbatches are fewer than the {stages} stages")
        schedule = {SCHEDULE: SCHEDULE_DEFAULT} if _is_looped(current) else {}
        return schedule | (_split(stages, current, layers) if LAYERS_EACH in current else {})
    _check_rounds(plan.microbatches, stages)
    schedule = {} if _is_looped(current) else {SCHEDULE: "Interleaved1F1B"}
    usual = repeats == _STAGES_OF_LOOPED and LAYERS_EACH not in current
    return schedule | ({} if usual else _split(stages * repeats, current, layers))


def _split(virtual: int, current: Mapping[str, object], layers: int | None) -> dict[str, str]:
    """Layers of each of so many virtual stages; the ends count as none where they leave no other way."""
    if layers is None:
        raise PlanError("virtual stages need the number of layers")
    everything = layers + _as_layers(current)
    if _virtual(everything, each := -(-everything // virtual)) == virtual:
        return {LAYERS_EACH: str(each)}
    if layers % virtual:
        raise PlanError(f"torchtitan does not split {layers} layers into {virtual} stages of as many")
    return {LAYERS_EACH: str(layers // virtual), **dict.fromkeys(AS_LAYERS, "0")}


def _virtual(layers: int, each: int) -> int:
    return -(-layers // each)


def _as_layers(settings: Mapping[str, object]) -> int:
    return sum(int(str(settings.get(key, _AS_LAYERS_DEFAULT))) for key in AS_LAYERS)


def _is_looped(settings: Mapping[str, object]) -> bool:
    return str(settings.get(SCHEDULE, SCHEDULE_DEFAULT)).casefold() in _LOOPED


def _check_rounds(microbatches: int | None, stages: int) -> None:
    """An interleaved schedule takes its microbatches in rounds of as many, each of a microbatch a stage or more."""
    rounds = max((microbatches or 1) // stages, 1)
    if (microbatches or 1) % rounds:
        raise PlanError(f"{microbatches} microbatches do not divide into {rounds} rounds over {stages} stages")


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


_BATCH, _TYPE = "training.batch_size", "training.data_parallel_type"
_FIRST = "training.data_parallel_degree"
_REPLICATE = "parallelism.data_parallel_replicate_degree"
_CONTEXT = "parallelism.context_parallel_degree"
_AXES = abstract("torchtitan").axes
_OF_SECTIONS = {
    earlier: word.keys[0]
    for word in (_AXES.data, _AXES.replica, _AXES.model, _AXES.stage, _AXES.seq)
    if word
    for earlier in reversed(word.keys[1:])
} | {"experimental.pipeline_parallel_schedule": SCHEDULE}
_SECTION = "parallelism."
_COUNTS = ("experimental.pipeline_parallel_microbatches", "parallelism.pipeline_parallel_microbatches")
EARLIER = frozenset((_BATCH, *_OF_SECTIONS, *_COUNTS, _TYPE))
_LATER = (GLOBAL_BATCH, "training.dtype")
_SINCE_SHARDS = (_REPLICATE, _CONTEXT, "training.enable_cpu_offload")
"""What came with ``data_parallel_shard_degree``, in autumn 2024."""
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
    missing = {*_LATER, *(_SINCE_SHARDS if _FIRST in settings else ())}
    if of_sections:
        kept = {STAGE_BATCH, *_OF_SECTIONS.values(), *settings}
        missing |= {key for key in changed if key.startswith(_SECTION) and key not in kept}
    if unsaid := next((key for key in changed if key in missing), None):
        sign = _FIRST if unsaid in _SINCE_SHARDS else min(EARLIER & settings.keys())
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
