"""What differs between a configuration before and after, in the words of a training run."""

from asap.ci.report import Change
from asap.core.text import plain
from asap.diagnosis.study import Study
from asap.experiments import Experiment
from asap.models import Architecture

UNKNOWN = "unknown"
_MOST_SETTINGS = 12
_IN_OTHER_WORDS = ("ici_", "dcn_", "base_", "per_device_batch_size", "gradient_accumulation", "num_pipeline")
_ALREADY_TOLD = frozenset({"max_target_length", "remat_policy", "model_name", "compile_topology", "run_name"})


def differences(before: Study, after: Study) -> tuple[Change, ...]:
    """Plan, batch, model, hardware, then other settings."""
    pairs = [
        (name, describe(before.experiment), describe(after.experiment))
        for name, describe in (("plan", plan_text), ("batch", batch_text), ("hardware", hardware_text))
    ]
    changes = [Change(what=name, before=old, after=new) for name, old, new in pairs if old != new]
    changes += _model(before.experiment.model, after.experiment.model)
    return (*changes, *_settings(before.experiment, after.experiment))


def plan_text(experiment: Experiment) -> str:
    """The plan in its text form."""
    return str(experiment.plan) if experiment.plan else UNKNOWN


def batch_text(experiment: Experiment) -> str:
    """``256 sequences of 8192 tokens, bf16``."""
    workload = experiment.workload
    batch = f"{workload.global_batch} sequences" if workload.global_batch else "an unknown number of sequences"
    length = f" of {workload.sequence_length} tokens" if workload.sequence_length else ""
    return plain(batch + length + (f", {workload.precision}" if workload.precision else ""), 200)


def hardware_text(experiment: Experiment) -> str:
    """``v5p-512, 4x8x8, 256 devices``."""
    hardware = experiment.hardware
    shape = "x".join(map(str, hardware.topology)) if hardware.topology else None
    parts = [hardware.name or hardware.chip, shape]
    parts += [f"{hardware.slices} slices" if hardware.slices > 1 else None]
    parts += [f"{hardware.devices} devices" if hardware.devices else None]
    return plain(", ".join(part for part in parts if part) or UNKNOWN, 200)


def model_text(experiment: Experiment) -> str:
    """``llama3.1-70b``, or its shapes."""
    model = experiment.model
    if model is None:
        return UNKNOWN
    shapes = [f"{model.layers} layers"] if model.layers else []
    shapes += [f"width {model.d_model}"] if model.d_model else []
    shapes += [f"{model.experts} experts"] if model.experts else []
    return plain(", ".join([*([model.name] if model.name else []), *shapes]) or UNKNOWN, 200)


def _model(before: Architecture | None, after: Architecture | None) -> list[Change]:
    old, new = (model.model_dump() if model else {} for model in (before, after))
    keys = [key for key in {**old, **new} if old.get(key) != new.get(key)]
    return [
        Change(what=f"model {key}".replace("_", " "), before=_value(old.get(key)), after=_value(new.get(key)))
        for key in keys[:_MOST_SETTINGS]
    ]


def _settings(before: Experiment, after: Experiment) -> list[Change]:
    old, new = before.hyperparameters, after.hyperparameters
    keys = [key for key in {**old, **new} if old.get(key) != new.get(key) and not _told(key)]
    return [
        Change(what=plain(k, 80), before=_value(old.get(k)), after=_value(new.get(k))) for k in keys[:_MOST_SETTINGS]
    ]


def _told(key: str) -> bool:
    return key in _ALREADY_TOLD or key.startswith(_IN_OTHER_WORDS)


def _value(value: object) -> str:
    return "not set" if value is None else plain(value, 80)
