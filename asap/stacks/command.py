"""The whole command of a run with a plan's settings in it."""

import re
import shlex
from collections.abc import Iterable, Iterator
from pathlib import PurePath

from asap.core.errors import PlanError
from asap.stacks.launchers import Stack
from asap.stacks.registry import contracts

COMMAND = "command"
"""In the provenance of a record: the command of the script that was read."""
_SOURCE = re.compile(r"^([^:,;]+?\.(?:ya?ml|toml))(?::|$)")
_WITHOUT, _COMMENT = re.compile(r"\s*#\s*without\s(.*)"), re.compile(r"^# [^\n]*\n", re.MULTILINE)
_VALUE = r"(?:\"[^\"]*\"|'[^']*'|[^\s\"'<>|&;]+)"
_END = re.compile(r"\s(?:\d?>|[|&;])")
"""Where the words of a command end."""


def start_command(stack: Stack, line: str, said: str | None, sources: Iterable[str], gpus: int, nodes: int) -> str:
    """The command with a plan's settings as options.

    Args:
        stack: whose program is started.
        line: what is changed, as :func:`asap.stacks.launchers.launch_lines` gives it.
        said: the command on record, where the run was given as its script.
        sources: where values of the record come from, which name its file.
        gpus: devices of a node.
        nodes: how many.

    Raises:
        PlanError: the program takes no options, or the run was given neither as its file nor as its script.
    """
    if said and (changed := _with_options(said, line)) is not None:
        return changed
    known = contracts()[stack]
    files = [found[1] for source in sources if (found := _SOURCE.match(source)) and found[1].endswith(known.files)]
    if not known.command or not files or said:
        raise PlanError(
            f"no whole command is known for {known.title} of this run",
            hint="add the line to the command that starts it",
        )
    of_toml = stack == "torchtitan"
    options = " ".join(f"--{key} {shlex.quote(value)}" for key, value in _of_toml(line)) if of_toml else line
    return known.command.format(
        file=shlex.quote(PurePath(files[0]).name), options=" ".join(options.split()), gpus=gpus, nodes=nodes
    )


def _of_toml(text: str) -> Iterator[tuple[str, str]]:
    """Settings of TOML by dotted key."""
    import tomlkit

    for table, entries in tomlkit.parse(text).unwrap().items():
        yield from ((f"{table}.{key}", str(value)) for key, value in entries.items())


def _with_options(command: str, line: str) -> str | None:
    """A command with the options of a line in the place of its own, others behind them; ``None`` where the line is no
    options."""
    removed = _WITHOUT.search(line)
    text = _COMMENT.sub("", line[: removed.start()] if removed else line).partition("  # ")[0]
    found = re.findall(rf"--[\w.-]+(?:\s+(?!-){_VALUE}(?!\S))*|\+*[\w.]+={_VALUE}", text)
    if " ".join(found).split() != text.split():
        return None
    for option in found:
        name = re.match(r"--[\w.-]+|\+*[\w.]+(?==)", option)
        command = _replaced(command, name[0] if name else option, option)
    for name in removed[1].partition("#")[0].split() if removed else ():
        command = _replaced(command, name, "")
    return command


def _replaced(command: str, name: str, option: str) -> str:
    """A command with an option in the place of the one of that name, in either way to write it."""
    bare = "[-_]".join(map(re.escape, re.split("[-_]", name.lstrip("-+"))))
    takes = rf"(?:=\S+|(?:\s+(?![-$]){_VALUE})*)" if " " in option else r"(?:=\S+|\s+(?i:true|false)(?!\S))?"
    pattern = rf"(?<!\S)--{bare}(?![\w.-]){takes}" if name.startswith("--") else rf"(?<!\S)\+*{bare}={_VALUE}"
    if re.search(pattern, command):
        return re.sub(rf"\s*{pattern}" if not option else pattern, lambda _: option, command, count=1)
    end = _END.search(command)
    place = end.start() if end else len(command)
    return f"{command[:place].rstrip()} {option}{command[place:]}" if option else command
