"""Commands that a comment in their middle ends, though a backslash before it was to continue them."""

from pathlib import Path

from asap.core.text import plain
from asap.experiments.experiment import Experiment
from asap.experiments.files.named_file import Brought
from asap.experiments.shell import read_commands, unread_line, with_sources


def with_note_on_cut(text: str, path: Path, experiment: Experiment, brought: Brought | None = None) -> Experiment:
    """``experiment`` with notes on what a comment keeps from the commands of a script, and on a line that is no bash.

    Args:
        text: the commands.
        path: the file that has them.
        experiment: what is known besides.
        brought: files that it finds beside itself.
    """
    commands = read_commands(with_sources(text, path.parent, brought))
    cut = next((command.cut for command in commands if command.cut), "")
    notes = [*experiment.notes, *note_on_cut(cut)]
    if (line := unread_line(text)) is not None:
        notes.append(f"what begins in line {line} of {path.name} is no syntax of bash that is read, and left out")
    return experiment.model_copy(update={"notes": tuple(notes)})


def note_on_cut(cut: str) -> tuple[str, ...]:
    """What is not given to a command; nothing where nothing is cut off."""
    return (f"a comment ends the command before {plain(cut, 60)}: what follows is not given to it",) if cut else ()
