"""Scripts that hand over to another one beside them: ``sbatch --nodes=4 train.sh 8b``."""

import re
from collections.abc import Callable
from pathlib import Path

from asap.core.errors import ConfigError
from asap.experiments.documents import read_text
from asap.experiments.shell.script import with_sources

_CALL = re.compile(
    r"""^[ \t]*(?P<by>(?:(?:exec|nohup|time|sbatch|srun|bash|sh)\b(?:[^\n|;&\\]|\\\n)*?[ \t\n])?)
    ["']?(?P<name>[\w./${}-]*[\w}-]\.(?:sh|slurm|sbatch))["']?
    (?P<rest>(?:[ \t](?:[^\n|;&<>\\]|\\\n)*)?)[^\n]*$""",
    re.MULTILINE | re.VERBOSE,
)
_PROGRAM = ".py"
_CONTINUED = " \t\\\n"
_PARSES = re.compile(r"(?:^|[;&|{)]|\b(?:do|then|while)\b)[ \t]*(?:shift|getopts?)\b", re.MULTILINE)
"""How a script goes through its arguments, which is not followed."""


def with_called(text: str, folder: Path, fits: Callable[[str], bool]) -> tuple[str, str] | None:
    """The script with the first one that it calls in its place, and the name of that; ``None`` if it calls none.

    Args:
        text: the script.
        folder: where it is, and those that it calls.
        fits: whether a script may be meant, by its text with that of the one called.
    """
    text = with_sources(text, folder)
    for call in _CALL.finditer(text):
        name = call["name"].rpartition("/")[2]
        called = _read(folder / name)
        if called is None or _PROGRAM not in called or (call["rest"].strip() and _PARSES.search(called)):
            continue
        job = f"{call['by'].rstrip(_CONTINUED)}\n" if call["by"].startswith("sbatch") else ""
        whole = f"{text[: call.start()]}{job}set -- {call['rest'].strip()}\n{called}\n{text[call.end() :]}"
        if fits(whole):
            return whole, name
    return None


def _read(path: Path) -> str | None:
    try:
        return with_sources(read_text(path), path.parent) if path.is_file() else None
    except ConfigError:
        return None
