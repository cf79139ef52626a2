"""Programs that python starts, without a launcher."""

import re
from collections.abc import Mapping
from pathlib import Path

from asap.core.errors import ConfigError
from asap.core.numbers import digits
from asap.experiments.experiment import Experiment
from asap.experiments.processes import visible_gpus, with_devices

PYTHON = re.compile(r"(?:^|[\s/])python[\d.]*(?=\s)")
_SEVERAL = re.compile(r"(?:^|[\s/])(?:srun|mpirun|mpiexec)\s")
_OF_XLA = re.compile(r"\b(?:XLA_USE_SPMD|PJRT_DEVICE|torch_xla|xla_spawn)\b|--spmd_\w+")
_RANK = re.compile(r"^[ \t]*(?:export\s+)?(?:LOCAL_)?RANK=", re.MULTILINE)
"""What a script gives a process that is one of several: ``export RANK=$SLURM_PROCID``."""
_WORLD = "WORLD_SIZE"
_INSTEAD = "give the model, --hardware, --batch, --sequence and --plan"
_ONE = "python starts one process, taken as one device: on several, the Trainer's DataParallel is not modelled"


def in_one_process(
    start: str, script: str, environment: Mapping[str, str], path: Path, experiment: Experiment
) -> Experiment:
    """``experiment`` with the one device of such a program, where no hardware is said; with all ranks where the script
    says that it is one of several.

    Args:
        start: the command.
        script: that has it.
        environment: variables that it finds.
        path: the file that has it.
        experiment: what is known besides.

    Raises:
        ConfigError: the process drives several devices by itself.
    """
    if _OF_XLA.search(script) or any(map(_OF_XLA.fullmatch, environment)):
        raise ConfigError("trains by PyTorch/XLA, which is not read", where=str(path), hint=_INSTEAD)
    ranks, several = digits(environment.get(_WORLD, "")), visible_gpus(environment)
    if (ranks or 0) > 1 or (ranks is None and _RANK.search(script)):
        return with_devices(ranks, experiment)
    if several is not None and several > 1:
        reason = f"starts one process on {several} GPUs: the Trainer's DataParallel is not modelled"
        raise ConfigError(reason, where=str(path), hint=f"start it under torchrun --nproc_per_node {several}")
    if _SEVERAL.search(start):
        return experiment
    unsaid = experiment.hardware.devices is None and several is None
    return with_devices(1, experiment).knowing(*((_ONE,) if unsaid else ()))
