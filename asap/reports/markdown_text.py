"""Pieces of Markdown. Everything that came from files is escaped."""

from collections.abc import Iterable

from asap.core.text import markdown, plain_lines


def listing(lines: Iterable[str]) -> str:
    """A list of sentences."""
    return "\n".join(f"- {markdown(line)}" for line in lines)


def table(head: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    """A table of plain texts."""
    columns = tuple(head)
    lines = [tuple(map(markdown, columns)), tuple("---" for _ in columns), *(tuple(map(markdown, row)) for row in rows)]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def fence(lines: Iterable[str]) -> list[str]:
    """A code block, if there is anything in it."""
    text = "\n".join(plain_lines(line).replace("`", "") for line in lines)
    return [f"```\n{text}\n```"] if text else []
