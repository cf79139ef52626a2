"""Files that a script makes of a template: ``sed "s/STAGE/3/" template.json | sed "s/MICRO/4/" > ds.json``."""

import re
from collections.abc import Iterable
from pathlib import Path

from asap.experiments.files.named_file import Brought, below_variable, find_named
from asap.experiments.shell.script import Command
from asap.experiments.shell.words import words

_PROGRAMS = ("sed", "cat")
_TARGETS = (">", ">>")
_LITERAL = re.compile(r"[\w\s\"':,@%#<>{}-]+")
_LONGEST = 1_000_000
_DELIMITERS = "/|#,@:"


def edited_files(commands: Iterable[Command], path: Path, brought: Brought) -> dict[str, str]:
    """Texts that ``sed`` makes of files, by their path; one that a pattern decides is empty.

    Args:
        commands: of the script, in its order.
        path: the script, beside which the templates lie.
        brought: files that come along with it or that it writes.

    Raises:
        ConfigError: a template cannot be read.
    """
    files: dict[str, str] = {}
    text: str | None = None
    for command in commands:
        said = words(command.text)
        if not said or said[0] not in _PROGRAMS or not command.certain or command.document:
            text = None
            continue
        target = next((said[at + 1] for at, word in enumerate(said[:-1]) if word in _TARGETS), None)
        operands = [word for word in said[1:] if not word.startswith("-") and word not in (*_TARGETS, target)]
        edits = [word for word in operands if _is_edit(word)] if said[0] == "sed" else []
        names = [word for word in operands if word not in edits]
        if names:
            found = find_named(below_variable(names[0]), path, {**brought, **files})
            text = found.text if found and len(names) == 1 else None
        text = _edited(text, edits)
        if "-i" in said and names:
            target = names[0]
        if target is not None:
            files[target] = text or ""
    return files


def _is_edit(word: str) -> bool:
    return len(word) > 3 and word[0] == "s" and word[1] in _DELIMITERS and word.count(word[1]) >= 3


def _edited(text: str | None, edits: Iterable[str]) -> str | None:
    """The text after substitutions of plain words; ``None`` where one is no such."""
    for edit in edits:
        _, old, new, flags = (*edit[1:].split(edit[1]), "")[:4]
        if text is None or flags not in ("", "g") or not _LITERAL.fullmatch(old) or "\\" in new or "&" in new:
            return None
        if len(text) + text.count(old) * len(new) > _LONGEST:
            return None
        count = -1 if flags else 1
        text = "\n".join(line.replace(old, new, count) for line in text.split("\n"))
    return text
