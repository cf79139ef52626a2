"""Files of JSON lines: one JSON object per line."""

from collections.abc import Iterator
from pathlib import Path

from asap.core.errors import BadInputError, NotFoundError


def read_json_lines(path: Path) -> Iterator[tuple[str, str]]:
    r"""The lines that are not blank, each with its place, ``file:line``.

    Only ``\n`` ends a line: a JSON string may hold every other line separator of Unicode (RFC 8259, section 7).

    Raises:
        NotFoundError: there is no such file.
        BadInputError: the file cannot be read as text.
    """
    try:
        text = path.read_bytes().decode("utf-8")
    except FileNotFoundError as error:
        raise NotFoundError("there is no such file", where=str(path)) from error
    except (OSError, UnicodeDecodeError) as error:
        raise BadInputError("cannot be read as text", where=str(path)) from error
    for number, line in enumerate(text.split("\n"), start=1):
        if line.strip():
            yield f"{path}:{number}", line
