"""Variables that a script exports for the run that it starts."""

from pathlib import Path

from asap.experiments.experiment import Experiment
from asap.experiments.files.named_file import Brought
from asap.experiments.shell import has_substitution, read_commands, with_sources
from asap.flags.environment import is_performance_variable


def with_exports(text: str, path: Path, experiment: Experiment, brought: Brought | None = None) -> Experiment:
    """``experiment`` with the exported variables that change performance; what is on record already stays.

    Args:
        text: the commands of the script.
        path: its file.
        experiment: what is known besides.
        brought: files that it finds beside itself.
    """
    exported: dict[str, str] = {}
    for command in read_commands(with_sources(text, path.parent, brought)):
        exported = command.scope.environment()
    found = {
        name: value for name, value in exported.items() if is_performance_variable(name) and not has_substitution(value)
    }
    return experiment.model_copy(update={"environment": found | experiment.environment})
