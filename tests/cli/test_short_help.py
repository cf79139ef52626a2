"""The list of commands at 80 columns says of each what it does, in a whole sentence."""

from collections.abc import Iterator
from typing import Any

import pytest
import typer

from asap.cli.app import app

WIDTH, INDENTS = 78, 6


def summaries(group: Any, path: str = "asap") -> Iterator[tuple[str, str]]:
    for name, command in group.commands.items():
        yield f"{path} {name}", command.get_short_help_str(WIDTH - INDENTS - max(map(len, group.commands)))
        if hasattr(command, "commands"):
            yield from summaries(command, f"{path} {name}")


SUMMARIES = dict(summaries(typer.main.get_command(app)))


@pytest.mark.parametrize("name", SUMMARIES)
def test_no_summary_is_cut_off(name):
    assert SUMMARIES[name]
    assert not SUMMARIES[name].endswith("...")
