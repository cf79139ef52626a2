"""Logical lines of a shell script: continuations, quotes and arrays over several lines, here-documents."""

import re
from collections.abc import Iterator
from dataclasses import dataclass

LONGEST_LINE = 20_000
_DIRECTIVE = re.compile(r"^\s*#SBATCH\s+")
_DOCUMENT = re.compile(r"(?<!<)<<-?\s*(['\"]?)([A-Za-z_]\w*)\1", re.ASCII)
_READS = r"(?:ssh|bash|sh|zsh|srun|pdsh|clush|sbatch|qsub|bsub|msub|pjsub|salloc)\b"
_SHELL = re.compile(rf"\s*(?:\w+=[\"']?\$\(\s*)?(?:sudo\s+)?{_READS}[^;&|]*<<|.*<<[^;&]*\|\s*(?:sudo\s+)?{_READS}")
"""What runs its here-document, or is given it by a pipe: those lines are commands."""
_INTO = re.compile(r"(?<![\d>&])>\s*[\"']?([^\s<>|;&\"']+)")
_FURTHEST = 200
"""Lines after a here-document among which one is looked for that runs it."""
_QUOTES = "'\""
_CUT = re.compile(r"\s*#.*\\\s*")


@dataclass(frozen=True)
class Line:
    """A logical line, with a newline wherever the script has one outside of quotes."""

    number: int
    text: str
    document: str = ""
    """The here-document that follows it."""
    cut: str = ""
    """What the script has after a comment that ends the line, though a backslash was to continue it."""


@dataclass
class _Open:
    """What is open at the end of a physical line: a quote, parentheses of an array."""

    quote: str = ""
    arrays: int = 0
    goes_on: bool = False

    def __bool__(self) -> bool:
        return bool(self.quote or self.arrays or self.goes_on)


def logical_lines(script: str) -> Iterator[Line]:
    """Lines with their continuations, by the number of the first, without comments.

    A quote or an array that is never closed is none: the lines after it are taken one by one. Directives of Slurm are
    taken as options of ``sbatch``.
    """
    lines = [_DIRECTIVE.sub("sbatch ", line, count=1) for line in script.splitlines()]
    ends = {line.strip(): number for number, line in enumerate(lines)}
    start, arrays = 0, True
    while start < len(lines):
        end, text, closed = _joined(lines, start, arrays)
        arrays = arrays and closed
        found = _DOCUMENT.search(text)
        until = end
        if found and ends.get(found[2], -1) >= end and not _SHELL.match(text):
            last = next(place for place in range(end, len(lines)) if lines[place].strip() == found[2])
            until = end if _is_run(text, lines[last : last + _FURTHEST]) else last
        is_cut = end - start > 1 and end < len(lines) and _CUT.fullmatch(lines[end - 1]) is not None
        cut = lines[end].strip(" \t\\") if is_cut else ""
        yield Line(start + 1, text, "\n".join(lines[end:until]), cut)
        start = until + (until > end)


def lines_in_quotes(script: str) -> frozenset[int]:
    """Numbers of the lines that begin within a quote."""
    lines = script.splitlines()
    starts = [line.number for line in logical_lines(script)]
    found: set[int] = set()
    for start, following in zip(starts, [*starts[1:], len(lines) + 1], strict=True):
        open_ = _Open()
        for number in range(start, following):
            if open_.quote:
                found.add(number)
            elif number > start and not open_:
                break
            _scan(lines[number - 1], open_, arrays=True)
    return frozenset(found)


def _is_run(text: str, rest: list[str]) -> bool:
    """Whether a line writes its here-document into a script that a later line runs: ``cat > job.sh <<EOF``."""
    into = _INTO.search(text)
    if into is None:
        return False
    runs = re.compile(rf"(?:^|[\s(;&|]){_READS}[^\n;&|]*[\s\"'/]{re.escape(into[1])}(?![\w.-])")
    return any(runs.search(line) for line in rest if into[1] in line)


def _joined(lines: list[str], start: int, arrays: bool) -> tuple[int, str, bool]:
    """Where the logical line ends, its text, and whether what it opens is closed."""
    parts: list[str] = []
    open_, end, length = _Open(), start, 0
    while end < len(lines) and length <= LONGEST_LINE:
        part = _scan(lines[end], open_, arrays)
        parts.append(part)
        length += len(part)
        end += 1
        if not open_:
            return end, "".join(parts), True
        if not (open_.quote and open_.goes_on):
            parts.append("\n")
    if not open_.quote and not open_.arrays:
        return end, "".join(parts), True
    return start + 1, lines[start], False


def _scan(line: str, open_: _Open, arrays: bool) -> str:
    """A line without its comment and last backslash; ``open_`` is brought up to date."""
    index, before, open_.goes_on = 0, " ", False
    while index < len(line):
        char = line[index]
        if char == "\\" and open_.quote != "'":
            if index == len(line) - 1:
                open_.goes_on = True
                return line[:-1]
            index, before = index + 2, "x"
            continue
        if open_.quote:
            open_.quote = "" if char == open_.quote else open_.quote
        elif char in _QUOTES:
            open_.quote = char
        elif char == "#" and before in " \t;&|(":
            return line[:index]
        elif char == "(" and (open_.arrays or (arrays and before == "=")):
            open_.arrays += 1
        elif char == ")" and open_.arrays:
            open_.arrays -= 1
        before = char
        index += 1
    return line
