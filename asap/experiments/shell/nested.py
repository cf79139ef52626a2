"""Scripts that a command has in quotes: ``srun bash -c "torchrun train.py"``, ``docker exec box bash -lc "…"``."""

from collections.abc import Iterator

from asap.experiments.shell.command import Command
from asap.experiments.shell.script import read_commands
from asap.experiments.shell.words import unquoted, written_words


def commands_within(command: Command) -> Iterator[Command]:
    """Commands of what stands in quotes, with the variables that are known where the command is reached."""
    known = {name: value for name, value in command.scope.variables.items() if value is not None}
    for word in written_words(command.text):
        if word[:1] in ("'", '"'):
            yield from read_commands(unquoted(word), known)
