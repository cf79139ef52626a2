"""Makefiles as shell scripts, line by line: their variables, and the recipes of all targets in order."""

import re
from collections.abc import Iterator
from pathlib import Path

_NAMES = ("makefile", "gnumakefile")
_ASSIGNMENT = re.compile(r"(?:export\s+|override\s+)*([A-Za-z_]\w*)\s*(?:::?|\?|\+)?=\s*(.*)", re.ASCII)
_VARIABLE = re.compile(r"\$[({]([A-Za-z_]\w*)[)}]", re.ASCII)
_SHELL = re.compile(r"\$\(shell\s+([^()]*)\)")
_PREFIX = re.compile(r"^[@+-]+\s*")
_CONDITIONS = {"ifeq": 'if [ "$(make)" ]; then', "else": "else", "endif": "fi"}
_SAME = {"ifneq": "ifeq", "ifdef": "ifeq", "ifndef": "ifeq"}
"""Which branch is taken only a run can tell."""


def is_makefile(path: Path) -> bool:
    """Whether a file is a Makefile, by its name."""
    return path.name.casefold() in _NAMES or path.suffix == ".mk"


def as_script(text: str) -> str:
    """The lines of a Makefile as those of a shell script; rules and what else a shell does not have are empty."""
    return "\n".join(_lines(text))


def _lines(text: str) -> Iterator[str]:
    goes_on = False
    for line in text.splitlines():
        if goes_on:
            yield _expanded(line)
        elif line.startswith("\t"):
            yield _expanded(_PREFIX.sub("", line[1:]))
        elif (found := _ASSIGNMENT.fullmatch(line)) is not None:
            yield f'{found[1]}="{_expanded(found[2]).replace(chr(34), "")}"'
        else:
            word = line.split(maxsplit=1)[0] if line.strip() else ""
            yield _CONDITIONS.get(_SAME.get(word, word), "")
        goes_on = line.endswith("\\") and (goes_on or line.startswith("\t"))


def _expanded(line: str) -> str:
    """A line with make's variables as those of a shell."""
    return _VARIABLE.sub(r"${\1}", _SHELL.sub(r"$(\1)", line)).replace("$$", "$")
