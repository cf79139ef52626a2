"""The record of a call that was caught: read like a script in which nothing is left open."""

from pathlib import Path

from asap.experiments.caught_command import CaughtCommand
from asap.experiments.configuration import read_commands
from asap.experiments.create import Statement, amend
from asap.experiments.experiment import Experiment


def record_of_call(call: CaughtCommand, id: str, hardware: str | None = None) -> Experiment:
    """What a launcher was called with, as a record.

    Args:
        call: of the launcher, made in the folder of this process.
        id: of the record.
        hardware: as the user says it, where the call does not.

    Raises:
        ConfigError: it starts nothing that is read, or its settings contradict each other.
        NotFoundError: the hardware is unknown.
    """
    said = Statement(hardware=hardware)
    found = read_commands(call.script, Path("caught.sh"), (), amend(Experiment(id=id), said))
    return amend(found, said)
