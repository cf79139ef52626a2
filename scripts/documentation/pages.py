"""Pages of the documentation, and the commands that they show: found, run in a folder of their own, and compared."""

import os
import re
import shutil
import subprocess
import sys
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


def insert_outputs(text: str, outputs: dict[int, tuple[str, ...]]) -> str:
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


_LONGEST_S = 600
_KEPT = ("PATH", "LANG", "LC_ALL", "TMPDIR")


def run_page(found: list[Command], start: Path | None, workplace: Path) -> Iterator[tuple[Command, int, str]]:
    """Each command with its exit code and what it printed on both outputs.

    Args:
        found: the commands of a page.
        start: a folder whose content the commands find in theirs, which is a Git repository, and in their home.
        workplace: an empty folder, for them alone.
    """
    place, programs = workplace / "work", workplace / "bin"
    if start is None:
        place.mkdir()
    else:
        shutil.copytree(start, place)
        shutil.copytree(start, workplace, dirs_exist_ok=True)
    _make_repository(place)
    (place / "LOG_DIR").symlink_to(ROOT / "asap" / "experiments" / "bundled" / "cpu-8dev")
    (place / "scripts").symlink_to(ROOT / "scripts")
    (place / "tests").symlink_to(ROOT / "tests")
    _install(programs)
    environment = {name: os.environ[name] for name in _KEPT if name in os.environ} | {
        "PATH": f"{programs}{os.pathsep}{os.environ['PATH']}",
        "PYTHONPATH": str(ROOT),
        "HOME": str(workplace),
        "ASAP_HOME": str(workplace / "home"),
        "NO_COLOR": "1",
    }
    for command in found:
        done = subprocess.run(
            ["bash", "-c", command.text],
            cwd=place,
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=_LONGEST_S,
        )
        yield command, done.returncode, done.stdout.replace(str(place), ".")


def _make_repository(place: Path) -> None:
    """A Git repository with what is there, and ``origin/main`` at its only commit."""
    git = ["git", "-C", str(place), "-c", "user.name=reader", "-c", "user.email=reader@example.org"]
    for arguments in (["init", "--quiet"], ["add", "."], ["commit", "--quiet", "--allow-empty", "--message", "Begin"]):
        subprocess.run([*git, *arguments], check=True)
    subprocess.run([*git, "update-ref", "refs/remotes/origin/main", "HEAD"], check=True)


def _install(programs: Path) -> None:
    """``python`` and the ``asap`` of this checkout, whatever else is installed."""
    programs.mkdir()
    for name, program in (
        ("python", f'#!/bin/sh\nexec "{sys.executable}" "$@"\n'),
        ("asap", f"#!{sys.executable}\nfrom asap.cli import main\n\nmain()\n"),
    ):
        (programs / name).write_text(program)
        (programs / name).chmod(0o755)
