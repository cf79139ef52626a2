"""Files that a script makes of others before it starts a run: ``sed "s/STAGE/3/" template.json > ds.json``,
``yq -i '.training.steps = 8' run.yaml``, ``cp base.yaml run.yaml``, ``echo "zero_stage: 3" >> run.yaml``."""

from collections.abc import Iterable
from pathlib import Path

from asap.core.errors import ConfigError
from asap.core.text import plain
from asap.experiments.files.named_file import Brought, below_variable, find_brought, find_named
from asap.experiments.shell.made.aside import is_aside, is_settled, only_aside
from asap.experiments.shell.made.edits import assigned, is_substitution, substituted
from asap.experiments.shell.made.printed import PRINTERS, printed
from asap.experiments.shell.made.written import appended_to, written_file
from asap.experiments.shell.script import Command
from asap.experiments.shell.words import words

_SED, _CAT, _TEE, _ASSIGNING, _COPYING = "sed", "cat", "tee", ("yq", "jq"), ("cp", "mv")
_PROGRAMS = (_SED, _CAT, _TEE, *_ASSIGNING, *_COPYING, *PRINTERS)
_SUBCOMMANDS = ("eval", "e", "eval-all", "ea")
_TARGETS = (">", ">>")
_MOST = 64
"""Commands that are followed; what later ones make is not read."""
_IN_PLACE = ("-i", "--inplace", "--in-place")


def made_files(commands: Iterable[Command], path: Path, brought: Brought) -> dict[str, str]:
    """Files that a script writes by here-documents, and those that it makes of others."""
    commands = list(commands)
    written = {name: text for command in commands for name, text in written_file(command).items()}
    return {**written, **edited_files(commands, path, {**brought, **written})}


def edited_files(commands: Iterable[Command], path: Path, brought: Brought) -> dict[str, str]:
    """Texts that a script makes of files, by their path; one that only a run can tell is empty.

    Args:
        commands: of the script, in its order.
        path: the script, beside which the files lie.
        brought: files that come along with it or that it writes.
    """
    files: dict[str, str] = {}
    text: str | None = None
    left = _MOST
    for command in commands:
        said = words(command.text)
        if (appended := appended_to(command)) is not None:
            _append(files, appended, command.document if command.certain else None, path, brought)
        if not said or said[0] not in _PROGRAMS or command.document:
            text = None
            continue
        target = next((said[at + 1] for at, word in enumerate(said[:-1]) if word in _TARGETS), None)
        if said[0] in PRINTERS and target is None:
            text = printed(said)
            continue
        left -= 1
        operands = [word for word in said[1:] if not word.startswith("-") and word not in (*_TARGETS, target)]
        edits, names = _parted(said[0], operands)
        if said[0] in PRINTERS:
            text = printed(said)
        elif names and said[0] != _TEE:
            text = _text_of(names[0], path, {**brought, **files}) if len(names) == 1 else None
        before, text = text, _edited(said[0], text, edits) if left >= 0 else None
        in_place = any(word.startswith(_IN_PLACE) for word in said[1:])
        if said[0] in _COPYING and len(operands) == 2 and text is not None:
            target = operands[1]
        elif (in_place or said[0] == _TEE) and names:
            target = names[0]
        appends = _TARGETS[1] in said if said[0] != _TEE else "-a" in said
        if target is not None and appends:
            _append(files, target, text if command.certain or _decides_nothing(text) else None, path, brought)
        elif target is not None and not command.certain and in_place and _changes_nothing(before, text):
            text = before
        elif target is not None and (command.certain or said[0] not in (_CAT, *PRINTERS)):
            files[target] = text if text and command.certain else ""
        text = text if command.certain else None
    return files


def _append(files: dict[str, str], target: str, text: str | None, path: Path, brought: Brought) -> None:
    """Append to a file; one that is not read, or that is appended what only a run can tell, is empty."""
    before = _text_of(target, path, {**brought, **files})
    if before == "" or text is None or not is_settled(text):
        files[target] = ""
    elif before is None or not only_aside(before, before + text):
        files[target] = f"{before.rstrip()}\n{text}" if before else text


def _decides_nothing(text: str | None) -> bool:
    return text is not None and all(map(is_aside, text.splitlines()))


def _changes_nothing(before: str | None, after: str | None) -> bool:
    return before is not None and after is not None and only_aside(before, after)


def _text_of(named: str, path: Path, brought: Brought) -> str | None:
    """The text of a file; ``None`` where it is not there, or is no small text."""
    try:
        found = find_named(below_variable(named), path, brought)
    except ConfigError:
        return None
    return found.text if found else None


def check_edits(named: str, files: Brought, path: Path) -> None:
    """Raise ConfigError where the file of that name is edited in a way that is not read."""
    if find_brought(named, files) == "":
        reason = f"edits {plain(named, 80)} before the run in a way that is not read"
        raise ConfigError(reason, where=str(path), hint="give the file, as it is then, as --config")


def note_on_made(named: str, files: Brought, path: Path) -> tuple[str, ...]:
    """That a script makes the file of that name itself; nothing where it does not."""
    if find_brought(named, files) is None:
        return ()
    return (f"{path.name} makes {plain(named, 80)} itself before the run: change it there",)


def _parted(program: str, operands: list[str]) -> tuple[list[str], list[str]]:
    """Edits among the operands of a program, and the files that it takes."""
    if program == _SED:
        edits = [word for word in operands if is_substitution(word)]
        return edits, [word for word in operands if word not in edits]
    if program in _ASSIGNING:
        rest = [word for place, word in enumerate(operands) if place or word not in _SUBCOMMANDS]
        return rest[:1], rest[1:]
    if program in PRINTERS:
        return [], []
    return [], operands[:1] if program in _COPYING else operands


def _edited(program: str, text: str | None, edits: Iterable[str]) -> str | None:
    for edit in edits:
        if text is None:
            return None
        if program not in (_SED, *_ASSIGNING):
            break
        text = substituted(text, edit) if program == _SED else assigned(text, edit)
    return text
