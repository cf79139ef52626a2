"""An experiment from a DeepSpeed configuration (https://www.deepspeed.ai/docs/config-json) and a Hugging Face model."""

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from asap.core.errors import ConfigError, PlanError
from asap.experiments.deepspeed.named_configuration import not_predicted
from asap.experiments.experiment import Experiment
from asap.experiments.files.documents import Document, read_document
from asap.experiments.huggingface.reader import read_huggingface
from asap.experiments.named_model import NO_MODEL
from asap.experiments.settings.remarks import no_batch
from asap.models import Workload
from asap.plans.plan import Plan
from asap.stacks.deepspeed import settings as zero
from asap.stacks.reading import from_settings, global_batch_of
from asap.stacks.registry import spec
from asap.stacks.stack_settings import StackSettings, dotted, overriding

_TABLE = spec("deepspeed")
SIGNS = frozenset(
    [
        "zero_optimization",
        "train_micro_batch_size_per_gpu",
        "train_batch_size",
        "gradient_accumulation_steps",
        "zero_allow_untested_optimizer",
        "bf16",
        "fp16",
        "amp",
        "activation_checkpointing",
        "steps_per_print",
        "wall_clock_breakdown",
        "gradient_clipping",
        "tensor_parallel",
        "sequence_parallel_size",
        "zero_force_ds_cpu_optimizer",
        "communication_data_type",
        "optimizer",
        "scheduler",
    ]
)
_STRONG = frozenset(("zero_optimization", "train_micro_batch_size_per_gpu", "train_batch_size", "wall_clock_breakdown"))
_OWN = frozenset(("zero_optimization", "train_micro_batch_size_per_gpu"))
RECOMPUTATION_UNKNOWN = (
    "what is recomputed (gradient_checkpointing) is the model's code: add remat to --plan where it is known"
)
_MODEL_FILE = "config.json"
_STAGE = "zero_optimization.stage"


def is_deepspeed(values: Mapping[str, Any]) -> bool:
    """Whether a mapping is a configuration of DeepSpeed."""
    if "model_type" in values:
        return False
    return bool(_OWN & values.keys()) or (bool(_STRONG & values.keys()) and len(SIGNS & values.keys()) >= 2)


def is_setting(key: str) -> bool:
    """Whether an override is one of DeepSpeed's settings: ``zero_optimization.stage``."""
    return key.partition(".")[0] in SIGNS


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
    sources = {"plan": f"{path.name}: zero_optimization", "workload": path.name}
    return experiment.model_copy(
        update={
            "plan": plan,
            "workload": workload,
            "hyperparameters": experiment.hyperparameters | settings.harmless(),
            "provenance": experiment.provenance | sources,
            "notes": (*experiment.notes, *notes, *more, *not_predicted(settings), *settings.misspelt()),
        }
    )


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
    try:
        if devices is None:
            said = settings.count(zero.BATCH) if settings.get(zero.BATCH) not in (None, "auto") else None
            return None, said, ("how many devices there are is not said: add --hardware, such as h100-64",)
        known = _TABLE.words() & settings.keys()
        said = zero.prepared({key: settings[key] for key in known}, devices)
        plan = from_settings(_TABLE, said, devices).model_copy(update={"remat": None})
        batch = global_batch_of(_TABLE, said, plan)
    except PlanError as error:
        raise ConfigError(error.message, where=settings.where(), hint=error.hint) from error
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
        }
    )


def _secondary_shards(settings: StackSettings) -> int | None:
    """``auto``, as the Trainer fills in no such value, is DeepSpeed's default."""
    size = settings.get(zero.SECONDARY, 1)
    return settings.count(zero.SECONDARY) if size not in (1, None, "auto") else None


def _precision(settings: StackSettings) -> str | None:
    """``bf16`` or ``fp16`` where they are enabled; ``auto`` is the launcher's choice, not known here."""
    said = {kind: str(settings.get(f"{kind}.enabled", "false")).casefold() for kind in ("bf16", "fp16")}
    enabled = next((kind for kind, value in said.items() if value == "true"), None)
    return enabled or (None if "auto" in said.values() else "fp32")


def _optimizer(settings: StackSettings) -> str | None:
    kind = settings.text("optimizer.type")
    return kind.casefold() if kind else None
