"""Scripts that hand over to another one beside them: ``sbatch --nodes=4 train.sh 8b``."""

import re
from collections.abc import Callable, Iterator
from pathlib import Path

from asap.core.errors import ConfigError
from asap.experiments.files.named_file import find_named
from asap.experiments.shell.lines import lines_in_quotes
from asap.experiments.shell.nested import commands_within
from asap.experiments.shell.script import read_commands, with_sources

_CALL = re.compile(
    r"""^[ \t]*(?P<by>(?:(?:exec|nohup|time|sbatch|srun|bash|sh)\b(?:[^\n|;&\\]|\\\n)*?[ \t\n])?)
    (?P<set>(?:[A-Za-z_]\w*=(?:[^\s;&|\\]|\\\S)*+(?:[ \t\n]|\\\n)+)*)(?:(?:bash|sh)[ \t]+)?
    ["']?(?P<name>[\w./${}-]*[\w}-]\.(?:sh|slurm|sbatch))["']?
    (?P<rest>(?:[ \t](?:[^\n|;&<>\\]|\\\n)*)?)[^\n]*$""",
    re.MULTILINE | re.VERBOSE,
)
_REMOTE = re.compile(
    r"(?:sudo\s+)?(?:\S*/)?(?:ssh|pdsh|pssh|clush|parallel-ssh|srun|mpirun|mpiexec|(?:ba)?sh"
    r"|(?:docker|podman|kubectl|singularity|apptainer)\s+(?:exec|run))\s"
)
"""What takes commands in quotes, for another host, a container or a shell of their own."""
_PROGRAM = re.compile(r"\.py\b|\b(?:torchrun|python3?|accelerate|deepspeed|swift|megatron)\s")
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
    for whole_text, call in _calls(with_sources(text, folder)):
        name = call["name"].rpartition("/")[2]
        called = _read(call["name"], folder)
        if called is None or _PROGRAM.search(called) is None or (call["rest"].strip() and _PARSES.search(called)):
            continue
        job = f"{call['by'].rstrip(_CONTINUED)}\n" if call["by"].startswith("sbatch") else ""
        given = "".join(f"export {word}\n" for word in call["set"].replace("\\\n", " ").split())
        handed = f"{job}{given}set -- {call['rest'].strip()}\n{called}\n"
        whole = f"{whole_text[: call.start()]}{handed}{whole_text[call.end() :]}"
        if fits(whole):
            return whole, name
    return None


def _calls(text: str) -> Iterator[tuple[str, re.Match[str]]]:
    """Calls of scripts, also in what another host or a container is told to run, each with the script that it stands
    in."""
    lines, quoted = text.splitlines(), lines_in_quotes(text)
    for call in _CALL.finditer(text):
        if text.count("\n", 0, call.start()) + 1 not in quoted:
            yield text, call
    remote = [command for command in read_commands(text) if _REMOTE.match(command.written)]
    for command in remote:
        for inner in commands_within(command):
            before = "\n".join(lines[: command.line - 1])
            whole = f"{before}\n{inner.text}\n"
            if (call := _CALL.match(whole, len(before) + 1)) is not None:
                yield whole, call


def _read(named: str, folder: Path) -> str | None:
    """The script of that name beside the one that calls it, or by its path from a folder above."""
    try:
        found = find_named(named, folder / "script")
        return with_sources(found.text, found.path.parent) if found else None
    except ConfigError:
        return None
