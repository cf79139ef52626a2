"""Plans and quantities in free words."""

import pytest

from asap.chat.slots import number, read_slots


@pytest.mark.parametrize(
    ("words", "plans"),
    [
        ("break down the memory of proposal 2", ("2",)),
        ("why do you recommend the first one", ("1",)),
        ("which of 1 and 3 is better", ("1", "3")),
        ("what speaks against tp=8", ("model=8",)),
        ("delta between what runs now and option 1", ("now", "1")),
        ("what should I do first tomorrow", ()),
        ("we take the second step", ()),
        ("top 10 operations", ()),
    ],
)
def test_plans_are_found_by_rank_and_by_name(words, plans):
    assert read_slots(words).plans == plans


@pytest.mark.parametrize(
    ("words", "counts"),
    [
        ("suppose a batch of 512", {"global_batch": (512,)}),
        ("use a micro batch size of 2", {"micro_batch": (2,)}),
        ("what about a micro-batch of 4 sequences", {"micro_batch": (4,)}),
        ("at seq 32k", {"sequence_length": (32768,)}),
        ("context grows to 32k while the batch drops to 32", {"sequence_length": (32768,), "global_batch": (32,)}),
        ("with 128 v5e chips", {"chips": (128,)}),
        ("on four slices", {"slices": (4,)}),
        ("try microbatches 1 2 4 8", {"microbatches": (1, 2, 4, 8)}),
        ("chips at $2.10 an hour", {"price": (2.1,)}),
        ("30,000 steps to go", {"steps": (30000,)}),
        ("it takes 38 s", {"s": (38,)}),
    ],
)
def test_a_number_belongs_to_the_noun_that_it_counts(words, counts):
    assert read_slots(words).counts == counts


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
