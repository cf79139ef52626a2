"""Whether a file is a script of a shell; its commands, with the files that it sources."""

import re
from collections.abc import Iterator, Mapping
from functools import lru_cache
from pathlib import Path

from asap.core.errors import UnreadError
from asap.experiments.files.documents import below_variable, read_text
from asap.experiments.shell.scope import Command, Variables
from asap.experiments.shell.syntax import quoted_texts
from asap.experiments.shell.walk import Walk
from asap.experiments.shell.words import unquoted

_SOURCE = re.compile(r"^[ \t]*(?:source|\.)[ \t]+(.+?)[ \t]*$", re.MULTILINE)


def read_commands(script: str, known: Mapping[str, str] | None = None) -> Iterator[Command]:
    """Commands and assignments in the order of a script, without those of branches that it does not take.

    Args:
        script: its text.
        known: variables that it is started with.

    Raises:
        UnreadError: its variables come to more than any script of a run.
    """
    return iter(_commands(script, tuple((known or {}).items())))


@lru_cache(maxsize=32)
def _commands(script: str, known: tuple[tuple[str, str], ...]) -> tuple[Command, ...]:
    given = dict(known)
    return tuple(Walk(script, Variables({"#": "0", **given}, set(given))).commands)


def inline_files(text: str, folder: Path, deeper: int = 3) -> str:
    """The script with the files that it sources and that lie beside it or where it says."""

    def inline(found: re.Match[str]) -> str:
        name = found[1].strip("\"'")
        places = (folder / name.rpartition("/")[2], folder / below_variable(name))
        path = next((place for place in places if place.is_file()), None)
        return inline_files(read_text(path), folder, deeper - 1) if path and deeper else found[0]

    return _SOURCE.sub(inline, text)


def commands_within(command: Command) -> Iterator[Command]:
    """Commands of what stands in quotes, also as the value of an option, with the variables that are exported."""
    known = command.scope.environment()
    for text in quoted_texts(command.text):
        yield from read_commands(unquoted(text), known)


SCRIPTS = (".sh", ".bash", ".slurm", ".sbatch")
_OTHERS = (".zsh", ".ksh", ".fish", ".pbs", ".qsub", ".lsf", ".bsub", ".job", ".submit")
"""Of other shells and schedulers."""
_DOCUMENTS = (".yaml", ".yml", ".json", ".toml", ".conf", ".py")
_SHEBANG = re.compile(rb"#![^\n]*?[/ ](?:ba|z|k|da|fi)?sh\b")
_FISH = re.compile(r"#![^\n]*[/ ]fish\b")
_MAKEFILES = ("makefile", "gnumakefile")
_LONGEST = 200


def is_makefile(path: Path) -> bool:
    """Whether a file is a Makefile, by its name."""
    return path.name.casefold() in _MAKEFILES or path.suffix == ".mk"


def script_text(path: Path) -> str:
    """The text of a script; raises UnreadError where it is none of the Bourne shell, and like
    :func:`asap.experiments.files.documents.read_text`.
    """
    text = read_text(path)
    if is_makefile(path):
        raise UnreadError("is a Makefile, which is not read", where=str(path), hint="give the script that it runs")
    if path.suffix == ".fish" or _FISH.match(text):
        raise UnreadError("is a script of Fish, which is not read", where=str(path))
    return text


def is_script(path: Path) -> bool:
    """Whether a file is a script of a shell; one that is not there has its suffix alone."""
    if path.suffix in (*SCRIPTS, *_OTHERS) or is_makefile(path):
        return True
    if path.suffix in _DOCUMENTS:
        return False
    try:
        with path.open("rb") as stream:
            return _SHEBANG.match(stream.read(_LONGEST)) is not None
    except OSError:
        return False
