"""Code blocks of Markdown pages: which commands a page shows, and what it says that they print.

A ``console`` block is run: each line that begins with ``$`` is a command, and the lines under it are what it prints. A
line ``...`` stands for any number of lines. A ``sh`` block is not run, because it needs a network, a TPU or a key; its
``asap`` commands are parsed. A comment ``<!-- folder: NAME -->`` names the folder of ``tests/docs/folders`` that the
commands of the page start in.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
GAP = "..."
_FENCE = re.compile(r"^```(\w+)\n(.*?)^```$", re.M | re.S)
_VARYING = (
    (re.compile(r"\d{8}-\d{6}-[0-9a-f]{6}"), "20260101-000000-abcdef"),
    (re.compile(r"\d\d:\d\d:\d\d\.\d{3}"), "00:00:00.000"),
    (re.compile(r"\b[0-9a-f]{64}\b"), "0" * 64),
)
"""What differs between two runs: names of sessions, times of day, checksums."""


@dataclass(frozen=True)
class Command:
    """A command of a page, and the lines that the page shows under it; ``line`` is the number of its first line."""

    text: str
    shown: tuple[str, ...]
    line: int

    def accepts(self, printed: str) -> bool:
        """Whether the page shows what was printed. A command that shows nothing may print anything."""
        return not self.shown or _matches(self.shown, tuple(_lines(printed)))

    def updated(self, printed: str) -> tuple[str, ...]:
        """What the page should show: all that was printed, or as many lines around the gap as it shows now."""
        lines = tuple(_lines(printed))
        if not self.shown:
            return ()
        if GAP not in self.shown:
            return lines
        head = self.shown.index(GAP)
        tail = len(self.shown) - head - 1
        return (*lines[:head], GAP, *(lines[-tail:] if tail else ()))


def pages() -> list[Path]:
    """The pages whose commands are guarded."""
    return [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]


def commands(text: str) -> list[Command]:
    """The commands of the ``console`` blocks of a page, in their order."""
    found: list[Command] = []
    for first, lines in _blocks(text, "console"):
        if not lines[0].startswith("$ "):
            raise ValueError(f"line {first}: a console block begins with a command: $ asap …")
        for number, line in enumerate(lines, first):
            if line.startswith("$ "):
                found.append(Command(line[2:], (), number))
            else:
                found[-1] = Command(found[-1].text, (*found[-1].shown, line), found[-1].line)
    return found


def shell_lines(text: str) -> list[str]:
    """All command lines of a page, also of those blocks that are not run."""
    blocks = ("\n".join(lines).replace("\\\n", "") for _, lines in _blocks(text, "sh"))
    unrun = [line for block in blocks for line in block.splitlines() if line.strip()]
    return [command.text for command in commands(text)] + unrun


def folder(text: str) -> Path | None:
    """The folder that the commands of a page start in, if it names one."""
    named = re.search(r"<!-- folder: (\w+) -->", text)
    return ROOT / "tests" / "docs" / "folders" / named[1] if named else None


def with_outputs(text: str, outputs: dict[int, tuple[str, ...]]) -> str:
    """The page with other lines under its commands, by the number of the command's line."""
    lines = text.split("\n")
    for command in reversed(commands(text)):
        if command.line in outputs:
            lines[command.line : command.line + len(command.shown)] = outputs[command.line]
    return "\n".join(lines)


def _blocks(text: str, language: str) -> Iterator[tuple[int, list[str]]]:
    """The blocks of a language, with the number of the line that follows the fence."""
    for found in _FENCE.finditer(text):
        if found[1] == language:
            yield text.count("\n", 0, found.start()) + 2, found[2].rstrip("\n").split("\n")


def _lines(printed: str) -> Iterator[str]:
    for pattern, same in _VARYING:
        printed = pattern.sub(same, printed)
    for line in printed.rstrip("\n").split("\n"):
        yield line.replace(str(ROOT), "…").rstrip()


def _matches(shown: tuple[str, ...], printed: tuple[str, ...]) -> bool:
    if not shown:
        return not printed
    if shown[0] == GAP:
        return any(_matches(shown[1:], printed[start:]) for start in range(len(printed) + 1))
    return bool(printed) and shown[0] == printed[0] and _matches(shown[1:], printed[1:])
