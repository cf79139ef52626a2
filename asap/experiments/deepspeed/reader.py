"""An experiment from a DeepSpeed configuration (https://www.deepspeed.ai/docs/config-json) and a Hugging Face model."""

import tomllib
from collections.abc import Iterable, Mapping
from pathlib import Path, PurePosixPath
from typing import Any

from asap.core.errors import ConfigError
from asap.core.text import plain
from asap.experiments.experiment import Experiment
from asap.experiments.files.documents import Brought, Document, blamed_on, find_named, missing, read_document
from asap.experiments.huggingface_model import NO_MODEL, read_huggingface
from asap.experiments.remarks import no_batch, note_on_unmodelled
from asap.models import Workload
from asap.plans.degrees import DEVICES_UNKNOWN
from asap.plans.plan import Plan
from asap.stacks.deepspeed import stack as zero
from asap.stacks.deepspeed.stack import ACCUMULATION, BATCH, MICRO_BATCH, STAGE
from asap.stacks.reading import from_settings, global_batch_of
from asap.stacks.registry import spec
from asap.stacks.stack_settings import StackSettings, dotted, overriding
from asap.stacks.trainer.arguments import AUTO

PRESETS: dict[str, dict[str, dict[str, Any]]] = tomllib.loads(
    Path(zero.__file__).with_name("presets.toml").read_text(encoding="utf-8")
)
_OPEN = (MICRO_BATCH, ACCUMULATION, BATCH, "bf16.enabled", "fp16.enabled")


def shipped_configuration(named: str) -> dict[str, Any] | None:
    """What decides a step in the configuration of that path, by dotted key; ``None`` where no stack brings it along."""
    path = PurePosixPath(named)
    known = PRESETS.get(path.parent.name, {}).get(path.name)
    return None if known is None else preset(**known)


def preset(stage: int, offload: Iterable[str] = (), bf16: bool = False) -> dict[str, Any]:
    """Settings by dotted key, without what is left to the arguments of the run."""
    found: dict[str, Any] = dict.fromkeys(_OPEN, AUTO) | {STAGE: stage}
    found |= {f"zero_optimization.offload_{what}.device": "cpu" for what in offload}
    if bf16:
        found["bf16.enabled"] = True
        del found["fp16.enabled"]
    return found


def read_named_configuration(named: Any, path: Path, brought: Brought | None = None) -> dict[str, Any]:
    """DeepSpeed's settings by dotted key, of the file that is named, among those that are brought along, or from the
    folder of ``path`` or one above it; of one that a stack brings along what decides a step.

    Raises:
        ConfigError: none is named, or it is not there or malformed.
    """
    if isinstance(named, dict):
        return dotted(named)
    if not isinstance(named, str) or not named.endswith((".json", ".conf")):
        reason = "names no DeepSpeed configuration, and how else it is sharded is not read"
        hint = (
            "add deepspeed=FILE.json, or give the script that starts it (accelerate launch, torchrun), or the model's"
            " config.json, --hardware, --batch, --sequence and --plan"
        )
        raise ConfigError(reason, where=str(path), hint=hint)
    found = find_named(named, path, brought)
    if found is not None:
        return dotted(found.document().values)
    if (shipped := shipped_configuration(named)) is not None:
        return shipped
    raise missing("names", named, path, "lay it beside the file")


def with_note_on_shipped(experiment: Experiment, named: Any, path: Path, brought: Brought | None = None) -> Experiment:
    """``experiment`` with a note where the configuration that is named was taken for one that a stack brings along."""
    if not isinstance(named, str) or shipped_configuration(named) is None or find_named(named, path, brought):
        return experiment
    return experiment.knowing(f"{plain(named, 80)} is not there, and taken as the one that the stack brings along")


_ZERO = "zero_optimization"
_DEVICES = (f"{_ZERO}.offload_optimizer.device", f"{_ZERO}.offload_param.device")
_DISK = "nvme"
_COMPRESSED = ("onebit", "zeroone")
"""How the names of optimizers begin that exchange gradients of a bit."""


def not_predicted(settings: StackSettings) -> tuple[str, ...]:
    """Notes that name them; none where all are as DeepSpeed has them."""
    notes = list(note_on_unmodelled(settings, spec("deepspeed").unmodelled))
    if disk := [key for key in _DEVICES if str(settings.get(key)).casefold() == _DISK]:
        notes.append(f"{' and '.join(disk)} is {_DISK}, taken as the memory of the host")
    if str(settings.get("optimizer.type")).casefold().startswith(_COMPRESSED):
        notes.append("optimizer.type compresses what is exchanged; taken as exchanged whole")
    return tuple(notes)


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
    if settings.get(_STAGE) == "auto":
        raise ConfigError(
            "sets the ZeRO stage to what it does not say", where=str(path), hint=f"add {_STAGE}=N, from 0 to 3"
        )
    experiment, notes = _with_model(path, experiment)
    plan, batch, more = _plan(settings, experiment.hardware.devices)
    workload = _workload(settings, batch, experiment.workload)
    return experiment.knowing(
        *notes, *more, *not_predicted(settings), *settings.misspelt(),
        plan=plan, workload=workload, hyperparameters=settings.harmless(),
        provenance={"plan": f"{path.name}: zero_optimization", "workload": path.name},
    )  # fmt: skip


def _with_model(path: Path, experiment: Experiment) -> tuple[Experiment, tuple[str, ...]]:
    beside = path.parent / _MODEL_FILE
    if beside != path and beside.is_file():
        document: Document = read_document(beside)
        if "model_type" in document.values:
            return read_huggingface(document, experiment), ()
    if experiment.model is not None:
        return experiment, ()
    return experiment, (f"{NO_MODEL}, or lay its config.json beside the file",)


def _plan(settings: StackSettings, devices: int | None) -> tuple[Plan | None, int | None, tuple[str, ...]]:
    with blamed_on(settings.where()):
        if devices is None:
            said = settings.count(zero.BATCH) if settings.get(zero.BATCH) not in (None, "auto") else None
            return None, said, (DEVICES_UNKNOWN,)
        known = _TABLE.words() & settings.keys()
        said = zero.prepared({key: settings[key] for key in known}, devices)
        plan = from_settings(_TABLE, said, devices).model_copy(update={"remat": None})
        batch = global_batch_of(_TABLE, said, plan)
    notes = [RECOMPUTATION_UNKNOWN]
    if batch is None:
        left = [key for key in (zero.MICRO_BATCH, zero.ACCUMULATION) if settings.get(key, "auto") == "auto"]
        notes.append(no_batch(left))
    if "pipeline" in settings or any(key.startswith("pipeline.") for key in settings):
        notes.append("pipeline stages are the model's code (PipelineModule): say them with --plan")
    return plan, batch, tuple(notes)


def _workload(settings: StackSettings, batch: int | None, given: Workload) -> Workload:
    return given.model_copy(
        update={
            "global_batch": batch if batch is not None else given.global_batch,
            "precision": _precision(settings),
            "optimizer": _optimizer(settings),
            "framework": _TABLE.framework,
            "zero_stage": zero.zero_stage(settings),
            "secondary_shards": _secondary_shards(settings),
            "reduction_buffers": _reduction_buffers(settings),
        }
    )


def _secondary_shards(settings: StackSettings) -> int | None:
    """``auto``, as the Trainer fills in no such value, is DeepSpeed's default."""
    size = settings.get(zero.SECONDARY, 1)
    return settings.count(zero.SECONDARY) if size not in (1, None, "auto") else None


def _reduction_buffers(settings: StackSettings) -> float | None:
    """Bytes of a bucket, and of 4.5 where ZeRO-1 and 2 overlap them with the backward pass; ``auto`` is little.

    The factor is that of https://huggingface.co/docs/transformers/v4.15.0/main_classes/deepspeed.
    """
    stage, size = zero.zero_stage(settings), settings.get(_BUCKET, _BUCKET_SIZE)
    if not stage or size in (None, "auto"):
        return None
    overlaps = stage < 3 and str(settings.get("zero_optimization.overlap_comm")).casefold() == "true"
    return _HALF * (settings.whole(_BUCKET, _BUCKET_SIZE) or 0) * (_OVERLAPPED if overlaps else 1)


def _precision(settings: StackSettings) -> str | None:
    """``bf16`` or ``fp16`` where they are enabled; ``auto`` is the launcher's choice, not known here."""
    said = {kind: str(settings.get(f"{kind}.enabled", "false")).casefold() for kind in ("bf16", "fp16")}
    enabled = next((kind for kind, value in said.items() if value == "true"), None)
    return enabled or (None if "auto" in said.values() else "fp32")


def _optimizer(settings: StackSettings) -> str | None:
    kind = settings.text("optimizer.type")
    return kind.casefold() if kind else None
