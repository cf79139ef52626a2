"""The record of a call that was caught: read like a script in which nothing is left open."""

import tempfile
from pathlib import Path

from asap.experiments.caught_command import CaughtCommand
from asap.experiments.configuration import read_configuration
from asap.experiments.create import Statement, amend
from asap.experiments.experiment import Experiment

_NAME = "caught.sh"


def record_of_call(call: CaughtCommand, id: str, hardware: str | None = None) -> Experiment:
    """What a launcher was called with, as a record.

    Args:
        call: of the launcher.
        id: of the record.
        hardware: as the user says it, where the call does not.

    Raises:
        ConfigError: it starts nothing that is read, or its settings contradict each other.
        NotFoundError: the hardware is unknown.
    """
    said = Statement(hardware=hardware)
    with tempfile.TemporaryDirectory(prefix="asap-resolve-", dir=Path.cwd()) as folder:
        path = Path(folder) / _NAME
        path.write_text(call.script, encoding="utf-8")
        found = read_configuration(path, (), amend(Experiment(id=id), said))
    sources = {name: source.replace(str(path), _NAME) for name, source in found.provenance.items()}
    return amend(found.model_copy(update={"provenance": sources}), said)
