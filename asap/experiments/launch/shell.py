"""Shell scripts as far as they can be read without running them: logical lines, words, and variables that are said.

A variable is replaced where the script gives it a value or a default; what a command would have to say stays open,
as ``$NAME`` or ``$(…)``.
"""

import re
import shlex
from collections.abc import Iterator, Mapping

LONGEST_LINE = 60_000
_DEEPEST = 8
_NAME = re.compile(r"[A-Za-z_]\w*|\d", re.ASCII)
_ASSIGNMENT = re.compile(r"(?:(?:export|readonly|local|declare)\s+)?([A-Za-z_]\w*)=(.*)", re.ASCII | re.DOTALL)
_QUOTES = "'\""


def logical_lines(script: str) -> Iterator[tuple[int, str]]:
    """Lines with their continuations, by the number of the first: a backslash or an open quote goes on.

    A quote that is never closed is none: the lines after it are taken one by one.
    """
    lines = script.splitlines()
    start = 0
    while start < len(lines):
        end, text = _joined(lines, start)
        yield start + 1, text
        start = end


def _joined(lines: list[str], start: int) -> tuple[int, str]:
    text, quote, end, length = [], "", start, 0
    while end < len(lines) and length <= LONGEST_LINE:
        part, quote, goes_on = _scan(lines[end], quote)
        text.append(part)
        length += len(part)
        end += 1
        if not quote and not goes_on:
            return end, "".join(text)
        if quote and not goes_on:
            text.append("\n")
    if not quote:
        return end, "".join(text)
    return start + 1, lines[start]


def _scan(line: str, quote: str) -> tuple[str, str, bool]:
    """A line without its comment and last backslash, the quote that is open after it, and whether it goes on."""
    index, before = 0, " "
    while index < len(line):
        char = line[index]
        if char == "\\" and quote != "'":
            if index == len(line) - 1:
                return line[:-1] + ("" if quote else " "), quote, True
            index += 2
            before = "x"
            continue
        if quote:
            quote = "" if char == quote else quote
        elif char in _QUOTES:
            quote = char
        elif char == "#" and before in " \t;&|(":
            return line[:index], quote, False
        before = char
        index += 1
    return line, quote, False


def assignment(line: str) -> tuple[str, str] | None:
    """Name and value of a line that only assigns; its value is still to be expanded."""
    found = _ASSIGNMENT.fullmatch(line.strip())
    if found is None:
        return None
    value = found[2].strip()
    if len(value) >= 2 and value[0] in _QUOTES and value[-1] == value[0]:
        inner = value[1:-1]
        return (found[1], inner) if value[0] == "'" or '"' not in inner.replace('\\"', "") else None
    return (found[1], value) if not re.search(r"[\s;&|'\"]", re.sub(r"\$\{[^{}]*\}", "", value)) else None


def expand(text: str, known: Mapping[str, str], depth: int = 0) -> str:
    """Text with the variables that are known, or that have a default; ``$PWD`` is where the script is run."""
    parts: list[str] = []
    index, length = 0, 0
    while index < len(text):
        end, value = _variable(text, index, known, depth) if text[index] == "$" else (index + 1, text[index])
        if length + len(value) > LONGEST_LINE:
            value = text[index:end]
        parts.append(value)
        length += len(value)
        index = end
    return "".join(parts)


def _variable(text: str, start: int, known: Mapping[str, str], depth: int) -> tuple[int, str]:
    """Where the variable at ``start`` ends, and what it stands for: itself if that is not known."""
    if text[start + 1 : start + 2] == "{":
        end = _closing(text, start + 1)
        name = _NAME.match(text, start + 2)
        if end is None or name is None:
            return start + 1, text[start]
        rest = text[name.end() : end]
        default = re.match(r":?[-=]", rest)
        if name[0] in known and (not rest or default):
            return end + 1, known[name[0]]
        if default and depth < _DEEPEST:
            return end + 1, expand(rest[default.end() :].strip("\"'"), known, depth + 1)
        return end + 1, known.get(name[0], text[start : end + 1]) if not rest else text[start : end + 1]
    name = _NAME.match(text, start + 1)
    if name is None:
        return start + 1, text[start]
    value = known.get(name[0], "." if name[0] == "PWD" else None)
    return name.end(), value if value is not None else text[start : name.end()]


def _closing(text: str, opening: int) -> int | None:
    depth = 0
    for index in range(opening, min(len(text), opening + LONGEST_LINE)):
        depth += {"{": 1, "}": -1}.get(text[index], 0)
        if depth == 0:
            return index
    return None


def words(line: str) -> list[str]:
    """The words of a command; operators such as ``&&`` are words of their own."""
    lexer = shlex.shlex(line, posix=True, punctuation_chars=True)
    lexer.whitespace_split = True
    lexer.commenters = ""
    try:
        return list(lexer)
    except ValueError:
        return line.split()


def has_substitution(word: str) -> bool:
    """Whether a word still holds a variable or a substitution."""
    return "$" in word or "`" in word
