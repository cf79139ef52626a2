"""AGENTS.md names commands that there are."""

import re
from pathlib import Path

import pytest
from typer.main import get_command

from asap.cli.app import app

TEXT = (Path(__file__).parents[2] / "AGENTS.md").read_text(encoding="utf-8")
COMMANDS = sorted(set(re.findall(r"\basap ([a-z]+)(?: ([a-z]+))?", TEXT)))


@pytest.mark.parametrize(("group", "command"), COMMANDS)
def test_the_command_exists(group, command):
    commands = get_command(app).commands
    assert group in commands
    within = getattr(commands[group], "commands", None)
    assert within is None or command in within or (not command and "run" in within)


def test_it_fits_on_a_screen():
    assert len(TEXT.splitlines()) <= 45
