"""Variables that a script sets for the run that it starts."""

from collections.abc import Iterable
from pathlib import Path

from asap.experiments.experiment import Experiment
from asap.experiments.files.named_file import Brought
from asap.experiments.launch.refusal import starts_launcher
from asap.experiments.shell import has_substitution, read_commands, with_sources, words
from asap.flags.environment import is_performance_variable

_VISIBLE = "CUDA_VISIBLE_DEVICES"
"""It says which devices there are."""


def with_exports(text: str, path: Path, experiment: Experiment, brought: Brought | None = None) -> Experiment:
    """``experiment`` with the variables that change performance and are exported, or said to a launcher:
    ``NCCL_ALGO=Ring torchrun …``, ``mpirun -x NCCL_ALGO=Ring …``. What is on record already stays.

    Args:
        text: the commands of the script.
        path: its file.
        experiment: what is known besides.
        brought: files that it finds beside itself.
    """
    exported, handed = dict[str, str](), dict[str, str]()
    for command in read_commands(with_sources(text, path.parent, brought)):
        exported = command.scope.environment()
        if command.certain and not command.assigns and starts_launcher(command.text):
            handed = _assigned(words(command.text)) | handed
    found = {
        name: value
        for name, value in (exported | handed).items()
        if is_performance_variable(name) and name != _VISIBLE and not has_substitution(value)
    }
    return experiment.model_copy(update={"environment": found | experiment.environment})


def _assigned(words: Iterable[str]) -> dict[str, str]:
    parts = (word.partition("=") for word in words)
    return {name: value for name, equals, value in parts if equals}
