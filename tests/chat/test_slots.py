"""Plans and quantities in free words."""

import pytest

from asap.chat.slots import number, read_slots
from tests.cases import cases, listed


@cases("words, plans")
def test_plans_are_found_by_rank_and_by_name(words, plans):
    assert listed(read_slots(words).plans) == plans


@cases("words, counts")
def test_a_number_belongs_to_the_noun_that_it_counts(words, counts):
    assert listed(read_slots(words).counts) == counts


def test_factors_hardware_and_settings_are_found():
    assert read_slots("what if we doubled the batch size").factors == {"global_batch": 2.0}
    assert read_slots("would twice as many chips help").factors == {"chips": 2.0}
    assert read_slots("with 128 v5e chips").hardware == "v5e-128"
    assert read_slots("move to h100-64").hardware == "h100-64"
    assert read_slots("fp8 instead of bf16?").precision == "bf16"
    assert read_slots("from adamw to adafactor").optimizer == "adafactor"
    assert read_slots("what is fusion.12").operations == ("fusion.12",)


@pytest.mark.parametrize(
    ("text", "value"), [("16k", 16384), ("30k", 30000), ("1.5M", 1_500_000), ("30,000", 30000), ("a", None)]
)
def test_numbers_are_read_as_people_write_them(text, value):
    assert number(text) == value
