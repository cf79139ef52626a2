"""Run the commands of a page, as a reader would: one after the other, in a folder and a home of their own."""

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

from documentation.pages import ROOT, Command

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
