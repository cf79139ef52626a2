"""Shell scripts read without running them: what they set, and the commands that they come to."""

from asap.experiments.shell.scope import EVALUATED, Command
from asap.experiments.shell.script import SCRIPTS, commands_within, inline_files, is_script, read_commands, script_text
from asap.experiments.shell.starts import (
    Given,
    Start,
    environment_of,
    find_start,
    set_given,
    starts_in,
    undecided_options,
)
from asap.experiments.shell.syntax import unread_line
from asap.experiments.shell.variables import gpu_of_directives, has_substitution, slurm_variables
from asap.experiments.shell.words import Option, options, words

__all__ = [
    "EVALUATED", "SCRIPTS", "Command", "Given", "Option", "Start", "commands_within",
    "environment_of", "find_start", "gpu_of_directives", "has_substitution", "inline_files", "is_script",
    "options", "read_commands", "script_text", "set_given", "slurm_variables", "starts_in",
    "undecided_options", "unread_line", "words",
]  # fmt: skip
