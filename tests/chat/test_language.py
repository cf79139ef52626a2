"""The exact language: each line as what it asks, each command as the line that is read as it; what free words hold."""

import pytest

from asap.chat.language import LONGEST, Command, parse
from asap.chat.numbers import number
from asap.chat.slots import read_slots
from asap.chat.verbs import USAGE, about
from asap.chat.written import written
from asap.core.errors import UsageError
from tests.cases import cases, kept, listed

LINES = kept(__file__)["LINES"]
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


@cases("words, plans")
def test_plans_are_found_by_rank_and_by_name(words, plans):
    assert listed(read_slots(words).plans) == plans


@cases("words, counts")
def test_a_number_belongs_to_the_noun_that_it_counts(words, counts):
    assert listed(read_slots(words).counts) == counts


@cases("words, hardware")
def test_hardware_is_found_as_people_write_it(words, hardware):
    assert read_slots(words).hardware == hardware


@cases("words, chosen")
def test_a_change_names_what_it_chooses(words, chosen):
    slots = read_slots(words)
    assert chosen in (slots.precision, slots.optimizer, slots.remat, slots.setting, *slots.switched)


def test_factors_hardware_and_settings_are_found():
    assert read_slots("what if we doubled the batch size").factors == {"global_batch": 2.0}
    assert read_slots("would twice as many chips help").factors == {"chips": 2.0}
    assert read_slots("what is fusion.12").operations == ("fusion.12",)


@cases("text, value")
def test_numbers_are_read_as_people_write_them(text, value):
    assert number(text) == value
