"""Text for a comment on GitHub: :func:`asap.core.text.markdown`, and no mentions, references or links.

GitHub looks for mentions, issue numbers and addresses in the rendered text, where an escaped ``@`` is an ``@`` again
(html-pipeline's mention filter; cmark-gfm's autolinks). A zero-width space behind the sign is what stops it.
"""

import re
from collections.abc import Iterable

from asap.core.secrets import redacted
from asap.core.text import markdown, plain

_ZERO_WIDTH_SPACE = "&#8203;"
_SIGNS = re.compile(r"&#(?:64|35|58);")
_BLANKS = re.compile(r"([ \t]+)")
_WWW = re.compile(r"(?i)\bwww(?=\.)")


def prose(text: object, limit: int | None = None) -> str:
    """One line that GitHub shows as it is: no markup, no HTML, no link, no mention, no reference to an issue."""
    escaped = _SIGNS.sub(lambda sign: sign.group() + _ZERO_WIDTH_SPACE, markdown(redacted(str(text)), limit))
    return _WWW.sub(lambda word: word.group() + _ZERO_WIDTH_SPACE, escaped)


def fence(text: str, language: str = "") -> str:
    """A code block that its content cannot close."""
    lines = [code(line) for line in redacted(text).splitlines()]
    longest = max((len(run) for run in re.findall("`+", text)), default=0)
    ticks = "`" * max(3, longest + 1)
    return "\n".join([f"{ticks}{language}", *lines, ticks])


def listing(lines: Iterable[str]) -> str:
    """A list of lines that are Markdown already."""
    return "\n".join(f"- {line}" for line in lines)


def table(head: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> str:
    """A table of plain texts."""
    lines = [head, tuple("---" for _ in head), *(tuple(prose(cell) for cell in row) for row in rows)]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def code(line: str) -> str:
    """A line with its blanks, without invisible characters."""
    return "".join(part if part.isspace() else plain(part) for part in _BLANKS.split(line))
