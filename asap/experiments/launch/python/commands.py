"""Commands that a Python program starts: ``subprocess.run(["torchrun", …])``, ``os.system("torchrun …")``."""

import ast
import re
import shlex
from typing import Any

from asap.experiments.launch.python.calls import Program
from asap.experiments.launch.python.literals import parse_python
from asap.experiments.launch.python.operations import word
from asap.experiments.launch.python.values import value_of

_STARTS = re.compile(r"(?:^|\.)(?:run|Popen|call|check_call|check_output|system|popen|execvp|execv)$")
_MODULES = re.compile(r"\bsubprocess\b|\bos\.(?:system|popen|exec)")
_COMMAND = ("args", "cmd", "command")
_VARIABLE = re.compile(r"\$\w+")
_MOST_WORDS = 2


def started_script(text: str, where: str) -> tuple[str, frozenset[str]] | None:
    """The commands as a script in which each stands in its line, and the defaults of the program that they take;
    ``None`` where it starts none that can be told.

    Raises:
        ConfigError: it is no Python.
    """
    if _MODULES.search(text) is None:
        return None
    program = Program(parse_python(text, where))
    lines: dict[int, str] = {}
    for site in program.sites(lambda call: _STARTS.search(ast.unparse(call.func)) is not None):
        given = [*site.call.args, *(each.value for each in site.call.keywords if each.arg in _COMMAND)]
        said = [value_of(node, site.names, program.functions) for node in given]
        if command := next(filter(None, map(_command, said)), None):
            lines[site.call.lineno] = command
    if not lines:
        return None
    script = "\n".join(lines.get(number, "") for number in range(1, max(lines) + 1))
    return script, frozenset(program.functions.taken)


def _command(said: Any) -> str | None:
    """A command of several words, in one line."""
    if isinstance(said, list):
        words = map(word, said)
        said = " ".join(each if _VARIABLE.fullmatch(each) else shlex.quote(each) for each in words)
    whole = " ".join(said.replace("\\\n", " ").split("\n")) if isinstance(said, str) else ""
    return whole if len(whole.split()) > _MOST_WORDS else None
