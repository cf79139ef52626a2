"""Blocks of resolved settings in a log: where one begins, which lines are its own, and where it ends."""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cache

from asap.experiments.logs.formats import table
from asap.experiments.logs.text import strip_rank

MOST_LINES = 20_000
MOST_TEXT = 1_000_000
_MOST_BETWEEN = 40
_MOST_BEFORE = 600
_NARROWEST = 79  # characters of a terminal's line, less one
_DOTTED = re.compile(r"(?:^|[\s\]])([A-Za-z_]\w*) (?:\.{2,}|(?<=\w{20} )) ?(.*)$")
_UNFINISHED = re.compile(r"^\s+\w+ \.+$")  # a launcher broke the line, or the argument has no value
_END_OF_ARGUMENTS = re.compile(r"--- ?end of [\w ]{0,40}arguments")
_YAML_LINE = re.compile(r"^\s*(?:- |-$|#|[\w./'\"<>@$-]+\s*:(?:\s|$))|^\s+\S|^\s*$|^---$")
_CUT_KEY = re.compile(r"^[a-z_]+$")  # what is left of a line of YAML that is cut within its key
_OF_SETTINGS = re.compile(r"\w+:(?:\s|$)|\s+\S|- ")
_LOG_LINE = re.compile(r"^\s*(?:\[?(?:INFO|WARNING|ERROR|NeMo [IWE])\b|\[?\d{4}-\d\d-\d\d|[IWE]\d{4} \d\d:)")
_JSON_LINE = re.compile(r"^\s*(?:[\"'\[\]{}\d-]|true|false|null|True|False|None)")
_FIELD = re.compile(r"^\s*\w+=.*,$")
_OPENING, _CLOSING = "([{", ")]}"


@dataclass
class RawBlock:
    """Lines of a block as they were found."""

    kind: str
    """``arguments``, ``json``, ``yaml``, ``call``, or the ``fields`` of one whose beginning is not looked for."""
    title: str
    """The line that begins it."""
    line: int
    offset: int
    lines: list[str] = field(default_factory=list)
    complete: bool = False


@dataclass(frozen=True)
class BlockStart:
    """What begins a block: a text that the line contains, a pattern of it, and the grammar of what follows."""

    anchor: bytes
    pattern: re.Pattern[str]
    kind: str
    itself: bool = False
    """Whether the line that begins it is part of it."""
    headless: bool = False
    """Whether it is one of the later lines of a block whose beginning the log lacks."""


@cache
def starts() -> tuple[BlockStart, ...]:
    """What begins a block, of every stack."""
    return tuple(
        BlockStart(anchor.encode(), re.compile(pattern), **{name: one[name] for name in one if name != "lines"})
        for one in table("blocks")["start"]
        for anchor, pattern in one["lines"].items()
    )


class Collector:
    """Takes the lines after a block's beginning for as long as they are its own."""

    def __init__(
        self, start: BlockStart, found: re.Match[str], line: str, number: int, offset: int,
        before: Sequence[str] = (), rank: str = "", process: str = "",
    ):  # fmt: skip
        self.block = RawBlock(start.kind, line.strip()[:200], number, offset)
        self.open = True
        self._is_plain = start.kind == "yaml" and not rank  # "key: [" looks like a rank
        self._process = process if start.kind in ("json", "call") else ""  # every rank prints these, line by line
        self._headless = start.headless
        self._begun = start.kind != "arguments" or "arguments" in line
        self._depth, self._quote, self._skipped, self._length, self._part = 0, "", 0, 0, ""
        if start.kind == "arguments":
            for one in () if self._begun else (*before, line):
                self.feed(one)
        elif start.kind == "json":
            self._balanced(line[place:] if (place := line.find("{", found.start())) >= 0 else "")
        elif start.kind == "call":
            self._balanced(line[found.start() :])
        elif start.itself or start.kind == "fields":
            for one in (*before, line if start.itself else line.rpartition("(")[2]):
                self.feed(one)
        elif start.kind == "command":
            self.block.lines.append(line.rstrip("\n"))

    def is_of_another(self, process: str) -> bool:
        """Whether a launcher says that a line is of another process than the block."""
        return bool(self._process) and not self._process.startswith(process.strip())

    def feed(self, line: str) -> None:
        """Take the next line of the log, if it belongs to the block."""
        self._length += len(line)
        if len(self.block.lines) >= MOST_LINES or self._length > MOST_TEXT:
            self.open = False
            return
        line = line if self._is_plain else strip_rank(line)
        if self.block.kind == "arguments":
            self._argument(line)
        elif self.block.kind == "yaml":
            self._yaml(line)
        elif self.block.kind in ("command", "fields"):
            self.open = self._goes_on(line) if self.block.kind == "command" else _FIELD.match(line) is not None
            self.block.complete = not self.open
            self.block.lines += [line] if self.open else []
        elif self.block.kind == "call" or _JSON_LINE.match(line):
            self._skipped = 0
            self._balanced(line)
        else:
            self._skip()

    def _goes_on(self, line: str) -> bool:
        """Whether a line goes on with a command: a backslash says so, or a terminal broke it at its width."""
        before = self.block.lines[-1]
        if not line.strip() or _LOG_LINE.match(line):
            return False
        wrapped = len(before.rstrip()) >= _NARROWEST and len(self.block.lines) < _MOST_BETWEEN and "--" in before
        rest = len(words := line.split()) == 1 or any(word.startswith("--") for word in words)
        return before.rstrip().endswith("\\") or (wrapped and rest)

    def _skip(self) -> None:
        """Lines of other ranks stand between those of a block."""
        self._skipped += 1
        self.open = self._skipped < _MOST_BETWEEN
        self.block.complete = not self.open and "DeepSpeed" in self.block.title  # its print has no last line

    def _argument(self, line: str) -> None:
        line = self._part + line if line.startswith(".") else line
        if _END_OF_ARGUMENTS.search(line):
            self.block.complete, self.open = self._begun, False
        elif _UNFINISHED.match(line):
            self._part = line
        elif (found := argument(line)) is not None:
            self.block.lines.append(f"{found[0]} {found[1]}")
            self._skipped = 0
        else:
            self._skip()

    def _yaml(self, line: str) -> None:
        if not line.strip() and not self.block.lines:
            return
        if _LOG_LINE.match(line) or not _YAML_LINE.match(line):
            whole = bool(self.block.lines) and not self._headless and _CUT_KEY.match(line) is None
            self.open, self.block.complete = not self.block.lines, whole
            return
        self.block.lines.append(line)

    def _balanced(self, line: str) -> None:
        """Take lines up to the bracket that closes the first; brackets inside quotes do not count."""
        for place, char in enumerate(line):
            if self._quote:
                self._quote = "" if char == self._quote and line[place - 1 : place] != "\\" else self._quote
            elif char in "\"'" and (self.block.kind == "json" or not line[place - 1 : place].isalnum()):
                self._quote = char
            elif char in _OPENING:
                self._depth += 1
            elif char in _CLOSING:
                self._depth -= 1
                if self._depth <= 0:
                    self.block.lines.append(line[: place + 1])
                    self.block.complete, self.open = True, False
                    return
        self._quote = ""  # no value of a block spans lines inside of quotes
        if self._depth or line.strip():
            self.block.lines.append(line)


def argument(line: str) -> tuple[str, str] | None:
    """Name and value of a line of Megatron's block: ``num_layers ..... 32``; a long name leaves no room for dots."""
    found = _DOTTED.search(strip_rank(line).rstrip())
    return (found[1], found[2].strip()) if found else None


def lines_before(start: BlockStart, line: str, chunk: bytes, place: int, text_of: Callable[[bytes], str]) -> list[str]:
    """Lines right before a place, in order, of a block whose beginning the log lacks."""
    found: list[str] = []
    of_arguments = start.kind == "arguments" and "arguments" not in line
    while (of_arguments or start.headless) and place > 0 and len(found) < _MOST_BEFORE:
        begin = chunk.rfind(b"\n", 0, place - 1) + 1
        before = text_of(chunk[begin : place - 1])
        if argument(before) is None if of_arguments else not _OF_SETTINGS.match(before):
            break
        found.append(before)
        place = begin
    return found[::-1]
