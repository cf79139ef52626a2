"""Variables that a script exports for the run that it starts."""

import re
from pathlib import Path

from asap.experiments.experiment import Experiment
from asap.experiments.files.named_file import Brought
from asap.experiments.shell import has_substitution, read_commands, with_sources
from asap.flags.environment import is_performance_variable

_HANDED = re.compile(r"(?:^|\s)-x\s+([A-Z]\w*)=(\S+)", re.ASCII)
"""What ``mpirun -x NAME=VALUE`` gives to all ranks."""
_VISIBLE = "CUDA_VISIBLE_DEVICES"
"""It says which devices there are."""


def with_exports(text: str, path: Path, experiment: Experiment, brought: Brought | None = None) -> Experiment:
    """``experiment`` with the exported variables that change performance; what is on record already stays.

    Args:
        text: the commands of the script.
        path: its file.
        experiment: what is known besides.
        brought: files that it finds beside itself.
    """
    exported, handed = dict[str, str](), dict[str, str]()
    for command in read_commands(with_sources(text, path.parent, brought)):
        exported = command.scope.environment()
        if command.certain and not command.assigns:
            handed |= dict(_HANDED.findall(command.text))
    found = {
        name: value.strip("\"'")
        for name, value in (exported | handed).items()
        if is_performance_variable(name) and name != _VISIBLE and not has_substitution(value)
    }
    return experiment.model_copy(update={"environment": found | experiment.environment})
