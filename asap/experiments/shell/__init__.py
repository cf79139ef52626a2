"""Shell scripts read without running them: what they set, and the commands that they come to."""

from asap.experiments.shell.called import with_called
from asap.experiments.shell.edited import check_edits, edited_files, made_files
from asap.experiments.shell.given import Given, with_given
from asap.experiments.shell.nested import commands_within
from asap.experiments.shell.options import Option, options
from asap.experiments.shell.script import SCRIPTS, Command, read_commands, with_sources
from asap.experiments.shell.variables import has_substitution
from asap.experiments.shell.words import words
from asap.experiments.shell.written import written_file

__all__ = [
    "SCRIPTS",
    "Command",
    "Given",
    "Option",
    "check_edits",
    "commands_within",
    "edited_files",
    "has_substitution",
    "made_files",
    "options",
    "read_commands",
    "with_called",
    "with_given",
    "with_sources",
    "words",
    "written_file",
]
