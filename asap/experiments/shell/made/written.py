"""Files that a script writes by here-documents: ``cat > ds.json <<EOF``."""

import re

from asap.experiments.shell.script import Command

_TARGET = re.compile(
    r"(?<![\d>&])(?P<appended>>?)>\s*(?P<file>[^\s<>|;&]+)|\btee\s+(?P<more>-a\s+)?(?P<copy>[^\s<>|;&-][^\s<>|;&]*)"
)


def written_file(command: Command) -> dict[str, str]:
    """The file that a command writes, by its path; nothing where it writes none, or appends to one."""
    name = _named(command, appends=False)
    return {} if name is None else {name: command.document}


def appended_to(command: Command) -> str | None:
    """The file that a here-document is appended to: ``cat >> run.yaml <<EOF``."""
    return _named(command, appends=True)


def _named(command: Command, appends: bool) -> str | None:
    found = _TARGET.search(command.text) if command.document else None
    if found is None or bool(found["appended"] or found["more"]) != appends:
        return None
    return (found["file"] or found["copy"]).strip("\"'")
