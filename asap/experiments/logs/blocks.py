"""Blocks of resolved settings in a log: where one begins, which lines are its own, and where it ends."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, field

from asap.experiments.logs.text import without_rank

MOST_LINES = 20_000
MOST_TEXT = 1_000_000
_MOST_BETWEEN = 40
_NARROWEST = 79
"""Characters of a terminal's line, less one."""
_DOTTED = re.compile(r"(?:^|[\s\]])([A-Za-z_]\w*) (?:\.{2,}|(?<=\w{20} )) ?(.*)$")
_DOTTED_START = re.compile(r"--- [\w ]{0,40}\barguments ---|(?:^|\s)(?:num_layers|hidden_size) \.{2,} ")
_END_OF_ARGUMENTS = re.compile(r"--- ?end of [\w ]{0,40}arguments")
_YAML_LINE = re.compile(r"^\s*(?:- |-$|#|[\w./'\"<>@$-]+\s*:(?:\s|$))|^\s+\S|^\s*$|^---$")
_LOG_LINE = re.compile(r"^\s*(?:\[?(?:INFO|WARNING|ERROR|NeMo [IWE])\b|\[?\d{4}-\d\d-\d\d|[IWE]\d{4} \d\d:)")
_COMMAND = re.compile(r"(?:^|\s)--[A-Za-z][\w-]+[ =]\S")
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


STARTS = (
    BlockStart(b"Config(general=", re.compile(r"\bConfig\(general="), "call"),
    BlockStart(b"arguments -", _DOTTED_START, "arguments"),
    BlockStart(b"num_layers ...", _DOTTED_START, "arguments"),
    BlockStart(b"Running with configs:", re.compile(r"Running with configs:"), "json"),
    BlockStart(b"Running with args:", re.compile(r"Running with args:"), "json"),
    BlockStart(b"DeepSpeedEngine configuration", re.compile(r"DeepSpeedEngine configuration:"), "arguments"),
    BlockStart(b"DeepSpeedLight configuration", re.compile(r"DeepSpeedLight configuration:"), "arguments"),
    BlockStart(b"with {\n", re.compile(r"\bBuilding \S+ \S+? ?with \{$"), "json"),
    BlockStart(b"json = {", re.compile(r"\bjson = \{"), "json"),
    BlockStart(b"Config {", re.compile(r"(?:Model config |model_config[:=] ?)?\b\w+Config \{"), "json"),
    BlockStart(b"resolved config:", re.compile(r"resolved config:"), "yaml"),
    BlockStart(b"Experiment configuration", re.compile(r"\*{3,} Experiment configuration \*{3,}"), "yaml"),
    BlockStart(b"Optimized config", re.compile(r"Optimized config"), "yaml"),
    BlockStart(b"Logging config", re.compile(r"^\W*(?:Logging|Training using) config:?"), "yaml"),
    BlockStart(b"Training using config", re.compile(r"Training using config:?"), "yaml"),
    BlockStart(b"Building trainer", re.compile(r"^\W*Building trainer"), "yaml"),
    BlockStart(b"Arguments(", re.compile(r"\b[A-Z]\w*Arguments\((?=\w+=|$)"), "call"),
    BlockStart(b"Config:\n", re.compile(r"^Config:$"), "yaml"),
    BlockStart(b"config:\n", re.compile(r"(?:^|\] )config:$"), "json"),
    BlockStart(b"SFTConfig(", re.compile(r"\bSFTConfig\("), "call"),
    BlockStart(b"ModelArgs(", re.compile(r"\b\w*ModelArgs\("), "call"),
    BlockStart(b"Config(", re.compile(r"\b[A-Z]\w*(?:Config\w*|Args)\((?=\w+=|$)"), "call"),
    BlockStart(b"tensor_model_parallel_size=", re.compile(r"^\s*(?:\w+\()?tensor_model_parallel_size=\w+,$"), "fields"),
    BlockStart(b"--num-layers", _COMMAND, "command"),
    BlockStart(b"--model_name_or_path", _COMMAND, "command"),
    BlockStart(b"--micro-batch-size", _COMMAND, "command"),
    BlockStart(b"deepspeed --", re.compile(r"^(?:\s|\+|cmd = )*deepspeed --"), "command"),
    BlockStart(b"_target_: ", re.compile(r"^_target_: [\w.]+$"), "yaml", itself=True),
    BlockStart(b"max_seq_len: ", re.compile(r"^max_seq_len: \d+$"), "yaml", itself=True),
    BlockStart(b"config: {'", re.compile(r"\bconfig: \{'"), "json"),
    BlockStart(b"### model", re.compile(r"^### model\b"), "yaml"),
)


class Collector:
    """Takes the lines after a block's beginning for as long as they are its own."""

    def __init__(
        self, start: BlockStart, found: re.Match[str], line: str, number: int, offset: int, before: Sequence[str] = ()
    ):
        self.block = RawBlock(start.kind, line.strip()[:200], number, offset)
        self.open = True
        self._begun = start.kind != "arguments" or "arguments" in line
        self._depth, self._quote, self._skipped, self._length = 0, "", 0, 0
        if start.kind == "arguments":
            for one in () if self._begun else (*before, line):
                self.feed(one)
        elif start.kind == "json":
            rest = line[line.find("{", found.start()) :] if "{" in line[found.start() :] else ""
            self._balanced(rest)
        elif start.kind == "call":
            self._balanced(line[found.start() :])
        elif start.itself:
            self.feed(line)
        elif start.kind == "command":
            self.block.lines.append(line.rstrip("\n"))
        elif start.kind == "fields":
            self.feed(line.rpartition("(")[2])

    def feed(self, line: str) -> None:
        """Take the next line of the log, if it belongs to the block."""
        self._length += len(line)
        if len(self.block.lines) >= MOST_LINES or self._length > MOST_TEXT:
            self.open = False
            return
        line = without_rank(line)
        if self.block.kind == "arguments":
            self._argument(line)
        elif self.block.kind == "yaml":
            self._yaml(line)
        elif self.block.kind == "command":
            self.open = bool(line.strip()) and not _LOG_LINE.match(line) and self._goes_on(line)
            self.block.complete = not self.open
            self.block.lines += [line] if self.open else []
        elif self.block.kind == "fields":
            self.open = _FIELD.match(line) is not None
            self.block.complete = not self.open
            self.block.lines += [line.strip()] if self.open else []
        elif self.block.kind == "call" or _JSON_LINE.match(line):
            self._skipped = 0
            self._balanced(line)
        else:
            self._skip()

    def _goes_on(self, line: str) -> bool:
        """Whether a line goes on with a command: a backslash says so, or a terminal broke it at its width."""
        before = self.block.lines[-1]
        wrapped = len(before.rstrip()) >= _NARROWEST and len(self.block.lines) < _MOST_BETWEEN
        return before.rstrip().endswith("\\") or (wrapped and "--" in before)

    def _skip(self) -> None:
        """Lines of other ranks stand between those of a block."""
        self._skipped += 1
        self.open = self._skipped < _MOST_BETWEEN
        self.block.complete = not self.open and "DeepSpeed" in self.block.title  # its print has no last line

    def _argument(self, line: str) -> None:
        if _END_OF_ARGUMENTS.search(line):
            self.block.complete, self.open = self._begun, False
        elif (found := argument(line)) is not None:
            self.block.lines.append(f"{found[0]} {found[1]}")
            self._skipped = 0
        else:
            self._skip()

    def _yaml(self, line: str) -> None:
        if not line.strip() and not self.block.lines:
            return
        if _LOG_LINE.match(line) or not _YAML_LINE.match(line):
            self.open, self.block.complete = not self.block.lines, bool(self.block.lines)
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
    found = _DOTTED.search(without_rank(line).rstrip())
    return (found[1], found[2].strip()) if found else None
