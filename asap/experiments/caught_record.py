"""The record of a call that was caught: read like a script in which nothing is left open."""

from pathlib import Path

from asap.experiments.caught_command import CaughtCommand
from asap.experiments.configuration import read_commands
from asap.experiments.create import Statement, amend
from asap.experiments.experiment import Experiment


def record_of_call(call: CaughtCommand, id: str, stated: Statement) -> Experiment:
    """What a launcher was called with, as a record.

    Args:
        call: of the launcher, made in the folder of this process.
        id: of the record.
        stated: what the user says beside it.

    Raises:
        ConfigError: it starts nothing that is read, or its settings contradict each other.
        NotFoundError: the hardware is unknown.
    """
    found = read_commands(
        call.script, Path("caught.sh"), (), amend(Experiment(id=id), Statement(hardware=stated.hardware))
    )
    return amend(found, stated)
