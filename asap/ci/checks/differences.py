"""What differs between a configuration before and after: plan, batch, hardware, model, other settings."""

from asap.ci.report import SettingChange
from asap.core.text import plain
from asap.experiments import Experiment
from asap.models import Architecture
from asap.reports.descriptions import UNKNOWN, describe_hardware, describe_model
from asap.study.study import Study

_MOST_CHANGES = 39
_NO_SETTING = frozenset({"run_name"})


def differences(before: Study, after: Study) -> tuple[SettingChange, ...]:
    """Plan, batch, model, hardware, then other settings."""
    pairs = [
        (name, describe(before.experiment), describe(after.experiment))
        for name, describe in (("plan", plan_text), ("batch", batch_text), ("hardware", hardware_text))
    ]
    changes = [SettingChange(what=name, before=old, after=new) for name, old, new in pairs if old != new]
    changes += _model(before.experiment.model, after.experiment.model)
    changes += _settings(before.experiment, after.experiment)
    if (more := len(changes) - _MOST_CHANGES) > 0:
        left_out = SettingChange(what=f"{more} more settings differ", before="", after="")
        return (*changes[:_MOST_CHANGES], left_out)
    return tuple(changes)


def plan_text(experiment: Experiment) -> str:
    """The plan in its text form."""
    return str(experiment.plan) if experiment.plan else UNKNOWN


def batch_text(experiment: Experiment) -> str:
    """``256 sequences of 8192 tokens, bf16``."""
    workload = experiment.workload
    if not workload.global_batch:
        return UNKNOWN
    batch = f"{workload.global_batch} sequences"
    length = f" of {workload.sequence_length} tokens" if workload.sequence_length else ""
    return plain(batch + length + (f", {workload.precision}" if workload.precision else ""), 200)


def hardware_text(experiment: Experiment) -> str:
    """``v5p-512, 4x8x8, 256 devices``."""
    return plain(describe_hardware(experiment.hardware, experiment.hardware.devices), 200)


def model_text(experiment: Experiment) -> str:
    """``llama3.1-70b, 80 layers, width 8192``."""
    return plain(describe_model(experiment.model), 200)


def _model(before: Architecture | None, after: Architecture | None) -> list[SettingChange]:
    old, new = (model.model_dump() if model else {} for model in (before, after))
    keys = [key for key in {**old, **new} if old.get(key) != new.get(key)]
    return [
        SettingChange(what=f"model {key}".replace("_", " "), before=_value(old.get(key)), after=_value(new.get(key)))
        for key in keys
    ]


def _settings(before: Experiment, after: Experiment) -> list[SettingChange]:
    old, new = before.hyperparameters, after.hyperparameters
    keys = [key for key in {**old, **new} if old.get(key) != new.get(key) and key not in _NO_SETTING]
    return [SettingChange(what=plain(k, 80), before=_value(old.get(k)), after=_value(new.get(k))) for k in keys]


def _value(value: object) -> str:
    return "not set" if value is None else plain(value, 80)
