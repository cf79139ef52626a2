"""``args.json``, in which a run of ms-swift records its arguments with all defaults filled in."""

from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

from asap.core.errors import ConfigError
from asap.core.numbers import digits
from asap.experiments.experiment import Experiment
from asap.experiments.processes import with_devices
from asap.experiments.swift import megatron, trainer
from asap.stacks.megatron.arguments import TENSOR

_VERSION, _PROCESSES = "swift_version", "global_world_size"
_OF_PREFERENCES = "rlhf_type"


def is_arguments_file(values: Mapping[str, Any]) -> bool:
    """Whether a mapping holds the arguments of a run."""
    return _VERSION in values and ("model" in values or "model_type" in values)


def is_setting_of(values: Mapping[str, Any]) -> Callable[[str], bool]:
    """What tells whether an override is one of the arguments."""
    return megatron.is_setting if TENSOR in values else trainer.is_setting


def read_arguments_file(
    values: Mapping[str, Any], path: Path, overrides: Iterable[str], experiment: Experiment
) -> Experiment:
    """``experiment`` with what the arguments say; raises like :func:`asap.experiments.swift.trainer.read_trainer`."""
    if values.get(_OF_PREFERENCES):
        reason = f"{_OF_PREFERENCES}: training on preferences or rewards is not modelled"
        raise ConfigError(reason, where=str(path), hint="give a run that trains on tokens")
    experiment = with_devices(digits(str(values.get(_PROCESSES, ""))), experiment)
    if TENSOR in values:
        return megatron.read_megatron_swift(values, path, overrides, experiment)
    return trainer.read_trainer(values, path, overrides, experiment)
