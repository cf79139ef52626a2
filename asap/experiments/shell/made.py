"""Files that a script makes before it starts a run: read where a here-document says all of them, else refused."""

import re
from collections.abc import Iterable
from pathlib import Path

from asap.core.errors import UnreadError
from asap.core.text import plain
from asap.experiments.files.named_file import Brought, find_brought
from asap.experiments.shell.scope import Command
from asap.experiments.shell.words import words

_CONFIGURATIONS = (".yaml", ".yml", ".json", ".toml", ".conf")
_TARGET = re.compile(
    r"(?<![\d>&])(?P<appended>>?)>\s*(?P<file>[^\s<>|;&]+)|\btee\s+(?P<more>-a\s+)?(?P<copy>[^\s<>|;&-][^\s<>|;&]*)"
)
_IN_PLACE, _EDITORS = ("-i", "--inplace", "--in-place"), ("sed", "perl", "yq", "jq")
_COPYING = ("cp", "mv")


def made_files(commands: Iterable[Command]) -> dict[str, str]:
    """Texts of the files that commands write by here-documents; one that is made in another way is empty."""
    files: dict[str, str] = {}
    for command in commands:
        if command.document:
            files |= _written(command)
        else:
            files |= dict.fromkeys(filter(_is_configuration, _changed(command)), "")
    return files


def check_made(named: str, files: Brought, path: Path) -> None:
    """Raise UnreadError where the file of that name is made in a way that is not read."""
    if find_brought(named, files) == "":
        reason = f"makes or edits {plain(named, 80)} by a command before the run, which is not read"
        raise UnreadError(reason, where=str(path), hint="give the file, as it is then, as --config")


def note_on_made(named: str, files: Brought, path: Path) -> tuple[str, ...]:
    """That a script makes the file of that name itself; nothing where it does not."""
    if find_brought(named, files) is None:
        return ()
    return (f"{path.name} makes {plain(named, 80)} itself before the run: change it there",)


def _written(command: Command) -> dict[str, str]:
    found = _TARGET.search(command.text)
    if found is None:
        return {}
    whole = command.certain and not (found["appended"] or found["more"])
    return {(found["file"] or found["copy"]).strip("\"'"): command.document if whole else ""}


def _changed(command: Command) -> list[str]:
    """Files that a command redirects into, edits in place, or copies another one to."""
    said = words(command.text)
    found = [(target["file"] or target["copy"]).strip("\"'") for target in _TARGET.finditer(command.text)]
    program = said[0].rpartition("/")[2] if said else ""
    if program in _EDITORS and any(word.startswith(_IN_PLACE) for word in said[1:]):
        found += said[1:]
    return found + (said[-1:] if program in _COPYING and len(said) > 2 else [])


def _is_configuration(name: str) -> bool:
    return name.endswith(_CONFIGURATIONS)
