"""The exact language: what each line asks, and that each command is written as the line that is read as it."""

import pytest

from asap.chat.language import LONGEST, Command, parse
from asap.chat.verbs import USAGE, about
from asap.chat.written import written
from asap.core.errors import UsageError
from tests.cases import kept, listed

KEPT = kept(__file__)

LINES = KEPT["LINES"]
PROSE = (
    "memory of proposal 2", "why is it so slow", "it ran 1 = 4s", "fits 1?", "proposal 1 ran out of memory", "ran 1",
    "did it run 1 = 4.1s", "what if we doubled the batch", "limit", "oom", "hello", "", "limit yourself to 8 chips",
)  # fmt: skip


@pytest.mark.parametrize(("line", "asked"), LINES.items())
def test_a_line_is_a_query_with_its_arguments(line, asked):
    command = parse(line)
    assert listed((command.name, dict(command.arguments))) == asked


@pytest.mark.parametrize("line", LINES)
def test_a_command_is_written_as_a_line_that_is_read_as_it(line):
    command = parse(line)
    assert command is not None
    assert parse(written(command)) == command


@pytest.mark.parametrize("line", PROSE)
def test_prose_is_no_command(line):
    assert parse(line) is None


@pytest.mark.parametrize(("line", "says"), [("ran 1 = 9%", "% of what"), ("what if batch=2x", "needs a number")])
def test_what_a_figure_is_of_has_to_be_said(line, says):
    with pytest.raises(UsageError, match=says):
        parse(line)


def test_every_verb_says_what_it_does():
    assert all(len(about(verb)) > 10 for verb in USAGE)


@pytest.mark.parametrize(
    "line", ["what if " + "a=1 " * 240, "compare " + "1 " * 400, "x" * (LONGEST + 1), "\x1b[2J\u202e"]
)
def test_hostile_lines_are_read_or_refused(line):
    assert parse(line) is None or isinstance(parse(line), Command)
