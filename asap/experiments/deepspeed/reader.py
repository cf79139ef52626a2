"""An experiment from a DeepSpeed configuration (https://www.deepspeed.ai/docs/config-json) and a Hugging Face model."""

from collections.abc import Iterable, Mapping
from pathlib import Path, PurePosixPath
from typing import Any

from asap.core.errors import ConfigError
from asap.core.text import plain
from asap.experiments.experiment import Experiment
from asap.experiments.files.documents import Brought, blamed_on, find_named, missing, read_document
from asap.experiments.huggingface_model import NO_MODEL, read_huggingface
from asap.experiments.remarks import no_batch, table_notes
from asap.plans.degrees import DEVICES_UNKNOWN
from asap.plans.plan import Plan
from asap.stacks.deepspeed import stack as zero
from asap.stacks.reading import from_settings, global_batch_of
from asap.stacks.registry import spec
from asap.stacks.stack_settings import StackSettings, dotted, overriding
from asap.stacks.trainer.arguments import AUTO


def _shipped(named: str) -> dict[str, Any] | None:
    """What decides a step in the configuration of that path, by dotted key; ``None`` where no stack brings it along."""
    folder, name = PurePosixPath(named).parent, PurePosixPath(named).name.removeprefix("default-")
    known = zero.PRESETS.get(folder.name or ".", {}).get(name)
    return None if known is None else zero.PRESETS["any"] | known


def read_named_configuration(named: Any, path: Path, brought: Brought | None = None) -> dict[str, Any]:
    """DeepSpeed's settings by dotted key, of the file that is named, among those that are brought along, or from the
    folder of ``path`` or one above it; of one that a stack brings along what decides a step.

    Raises:
        ConfigError: none is named, or it is not there or malformed.
    """
    if isinstance(named, dict):
        return dotted(named)
    text = named if isinstance(named, str) else ""
    is_file = text.endswith((".json", ".conf"))
    if is_file and (found := find_named(text, path, brought)) is not None:
        return dotted(found.document().values)
    if (shipped := _shipped(text)) is not None:
        return shipped
    if is_file:
        raise missing("names", text, path, "lay it beside the file")
    reason = "names no DeepSpeed configuration, and how else it is sharded is not read"
    hint = (
        "add deepspeed=FILE.json, or give the script that starts it (accelerate launch, torchrun), or the model's"
        " config.json, --hardware, --batch, --sequence and --plan"
    )
    raise ConfigError(reason, where=str(path), hint=hint)


def with_note_on_shipped(experiment: Experiment, named: Any, path: Path, brought: Brought | None = None) -> Experiment:
    """``experiment`` with a note where the configuration that is named was taken for one that a stack brings along."""
    named = named if isinstance(named, str) and named.endswith(".json") else ""
    if _shipped(named) is None or find_named(named, path, brought):
        return experiment
    return experiment.knowing(f"{plain(named, 80)} is not there, and taken as the one that the stack brings along")


_TABLE = spec("deepspeed")
_SIGNS, _STRONG, _OWN = (frozenset(_TABLE.names[name]) for name in ("signs", "strong", "own"))
"""Sections: two of the first with one of the second, or one of the third, make a file one of DeepSpeed."""
RECOMPUTATION_UNKNOWN = (
    "what is recomputed (gradient_checkpointing) is the model's code: add remat to --plan where it is known"
)
_MODEL_FILE = "config.json"
_STAGE = "zero_optimization.stage"
_BUCKET, _BUCKET_SIZE = "zero_optimization.reduce_bucket_size", 500_000_000
_HALF, _OVERLAPPED = 2, 4.5
"""Bytes of an element, and buckets where ZeRO-1 and 2 overlap them with the backward pass
(https://huggingface.co/docs/transformers/v4.15.0/main_classes/deepspeed)."""


def is_deepspeed(values: Mapping[str, Any]) -> bool:
    """Whether a mapping is a configuration of DeepSpeed."""
    if "model_type" in values:
        return False
    return bool(_OWN & values.keys()) or (bool(_STRONG & values.keys()) and len(_SIGNS & values.keys()) >= 2)


def is_setting(key: str) -> bool:
    """Whether an override is one of DeepSpeed's settings: ``zero_optimization.stage``."""
    return key.partition(".")[0] in _SIGNS


def read_deepspeed(
    values: Mapping[str, Any], path: Path, overrides: Iterable[str], experiment: Experiment
) -> Experiment:
    """``experiment`` with what a DeepSpeed configuration says, and the model of a ``config.json`` beside it.

    Raises:
        ConfigError: a value of the wrong kind, or settings that contradict each other.
        UsageError: an override is not ``key=value``.
    """
    settings = StackSettings(dotted(values) | overriding(overrides), str(path))
    if settings.get(_STAGE) == AUTO:
        hint = f"add {_STAGE}=N, from 0 to 3"
        raise ConfigError("sets the ZeRO stage to what it does not say", where=str(path), hint=hint)
    experiment = _with_model(path, experiment)
    with blamed_on(settings.where()):
        plan, batch, notes = _plan(settings, experiment.hardware.devices)
        said = {**_workload(settings), **({"global_batch": batch} if batch else {})}
    workload, recorded = experiment.workload.model_copy(update=said), settings.harmless()
    return experiment.knowing(
        *notes, *table_notes(_TABLE, recorded, None), *settings.misspelt(),
        plan=plan, workload=workload, hyperparameters=recorded,
        provenance={"plan": f"{path.name}: zero_optimization", "workload": path.name},
    )  # fmt: skip


def _with_model(path: Path, experiment: Experiment) -> Experiment:
    beside = path.parent / _MODEL_FILE
    if beside != path and beside.is_file() and "model_type" in (document := read_document(beside)).values:
        return read_huggingface(document, experiment)
    return experiment if experiment.model else experiment.knowing(f"{NO_MODEL}, or lay its config.json beside the file")


def _plan(settings: StackSettings, devices: int | None) -> tuple[Plan | None, int | None, list[str]]:
    if devices is None:
        said = settings.count(zero.BATCH) if settings.get(zero.BATCH) not in (None, AUTO) else None
        return None, said, [DEVICES_UNKNOWN]
    said = zero.prepared({key: settings[key] for key in _TABLE.words() & settings.keys()}, devices)
    plan = from_settings(_TABLE, said, devices).model_copy(update={"remat": None})
    batch = global_batch_of(_TABLE, said, plan)
    left = [key for key in (zero.MICRO_BATCH, zero.ACCUMULATION) if settings.get(key, AUTO) == AUTO]
    return plan, batch, [RECOMPUTATION_UNKNOWN, *([no_batch(left)] if batch is None else [])]


def _workload(settings: StackSettings) -> dict[str, Any]:
    """Fields of the workload; ``auto`` is the launcher's choice, not known here, or of a size DeepSpeed's default."""
    stage, optimizer = zero.zero_stage(settings), settings.text("optimizer.type")
    said = {kind: str(settings.get(f"{kind}.enabled", "false")).casefold() for kind in ("bf16", "fp16")}
    enabled = next((kind for kind, value in said.items() if value == "true"), None)
    overlaps = stage < 3 and str(settings.get("zero_optimization.overlap_comm")).casefold() == "true"
    bucket = settings.whole(_BUCKET, _BUCKET_SIZE) if stage and settings.get(_BUCKET) != AUTO else None
    return {
        "precision": enabled or (None if AUTO in said.values() else "fp32"),
        "optimizer": optimizer and optimizer.casefold(),
        "framework": _TABLE.framework,
        "zero_stage": stage,
        "secondary_shards": settings.count(zero.SECONDARY)
        if settings.get(zero.SECONDARY, 1) not in (1, AUTO)
        else None,
        "reduction_buffers": bucket and _HALF * bucket * (_OVERLAPPED if overlaps else 1),
    }
