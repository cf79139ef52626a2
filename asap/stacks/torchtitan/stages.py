"""torchtitan's stages and batches, also those counted in tokens, and what its releases call them."""

from collections.abc import Mapping

from asap.core.errors import PlanError
from asap.plans.degrees import degree
from asap.plans.plan import Plan
from asap.stacks.registry import spec

_SCHEDULES = ("parallelism.pipeline_parallel_schedule", "experimental.pipeline_parallel_schedule")
SCHEDULE, SCHEDULE_DEFAULT = _SCHEDULES[0], "1F1B"
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
    # an interleaved schedule takes its microbatches in rounds of as many, each of a microbatch a stage or more
    count = plan.microbatches or 1
    if count % (rounds := max(count // stages, 1)):
        raise PlanError(f"{count} microbatches do not divide into {rounds} rounds over {stages} stages")
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
    return str(next((settings[key] for key in _SCHEDULES if key in settings), SCHEDULE_DEFAULT)).casefold() in _LOOPED


LOCAL_BATCH, GLOBAL_BATCH = "training.local_batch_size", "training.global_batch_size"
STAGE_BATCH, PIPELINE = "parallelism.pipeline_parallel_microbatch_size", "parallelism.pipeline_parallel_degree"
SEQUENCE, SHARD = "training.seq_len", "parallelism.data_parallel_shard_degree"
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


def in_tokens(plan: Plan, wanted: Mapping[str, str], settings: Mapping[str, object]) -> dict[str, str]:
    """Settings that a plan wants, with batches in tokens where those on record have them so."""
    if TOKENS not in settings:
        return dict(wanted)
    found = {key: value for key, value in wanted.items() if key not in (LOCAL_BATCH, STAGE_BATCH, GLOBAL_BATCH)}
    each, length = wanted.get(STAGE_BATCH, wanted.get(LOCAL_BATCH)), degree(settings, LENGTH, _LENGTH_DEFAULT)
    if each is not None:
        found[TOKENS] = str(int(each) * length)
    if GLOBAL_BATCH in wanted:
        found[STEP_TOKENS] = str(int(wanted[GLOBAL_BATCH]) * length)
    if STAGE_BATCH in wanted:
        found[PARTS] = str(plan.microbatches)
    return found


def _sequences(settings: Mapping[str, object], key: str) -> int:
    length = degree(settings, LENGTH, _LENGTH_DEFAULT)
    count, rest = divmod(degree(settings, key), length)
    if rest or not count:
        raise PlanError(f"{key}={settings[key]} is no multiple of {LENGTH}={length}")
    return count


_AXES = spec("torchtitan").axes
_EARLIER = {
    word.keys[0]: word.keys[1] for word in (_AXES.data, _AXES.replica, _AXES.model, _AXES.stage, _AXES.seq) if word
} | {SCHEDULE: _SCHEDULES[1]}
"""Settings of today, with their names in other sections until spring 2025."""
_COUNTS = ("experimental.pipeline_parallel_microbatches", "parallelism.pipeline_parallel_microbatches")
_TYPE, _SIZE = "training.data_parallel_type", "training.batch_size"
_SIGNS = frozenset((_SIZE, *_EARLIER.values(), "training.data_parallel_degree", *_COUNTS, _TYPE))


def microbatches_of_earlier(settings: Mapping[str, object], stages: int) -> int | None:
    """How many microbatches a release before summer 2025 has of a pipeline, by default one a stage; ``None`` of a later
    one, which says their size. Raises PlanError where replicas are all that data parallelism makes."""
    if LOCAL_BATCH in settings or _SIGNS.isdisjoint(settings):
        return None
    if str(settings.get(_TYPE, "fsdp")).casefold() != "fsdp":
        raise PlanError(f"{_TYPE} other than fsdp is not read", hint="say the plan with --plan")
    return next((degree(settings, key) for key in _COUNTS if key in settings), stages)


def in_earlier_names(plan: Plan, wanted: Mapping[str, str], settings: Mapping[str, object]) -> dict[str, str]:
    """Settings that a plan wants, as the release of those on record calls them."""
    count = microbatches_of_earlier(settings, plan.degree("stage"))
    if count is None:
        return dict(wanted)
    of_sections = any(key in settings for key in _SIGNS if not key.startswith(("parallelism.", _SIZE)))
    names = {**(_EARLIER if of_sections else {}), LOCAL_BATCH: _SIZE}
    found = {names.get(key, key): value for key, value in wanted.items() if key != STAGE_BATCH}
    if STAGE_BATCH in wanted and plan.microbatches != count:
        found[_COUNTS[0 if of_sections else 1]] = str(plan.microbatches)
    return found
