"""Files that a script writes by here-documents: ``cat > ds.json <<EOF``."""

import re

from asap.experiments.shell.script import Command

_TARGET = re.compile(r"(?<![\d>&])>{1,2}\s*([^\s<>|;&]+)|\btee\s+(?:-a\s+)?([^\s<>|;&-][^\s<>|;&]*)")


def written_file(command: Command) -> dict[str, str]:
    """The file that a command writes, by its path; nothing where it writes none."""
    target = _TARGET.search(command.text) if command.document else None
    return {} if target is None else {(target[1] or target[2]).strip("\"'"): command.document}
