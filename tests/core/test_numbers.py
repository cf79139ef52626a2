"""Numbers that strangers write: of any size, in any script."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from asap.core.errors import ConfigError
from asap.core.numbers import LARGEST_COUNT, digits, parse_toml, real_number, whole_number

SCRIPTS = ["٤٠", "１６", "²", "Ⅷ", "௧", "1_000", "1,000", "0x10", "1e3", " 4", "4\n", "+4", "", "-", "4.0"]


@pytest.mark.parametrize("text", SCRIPTS)
def test_only_ascii_digits_are_digits(text):
    assert digits(text) is None


@given(st.integers())
def test_digits_are_read_up_to_the_largest_count(number):
    assert digits(str(number)) == (number if abs(number) <= LARGEST_COUNT else None)


@given(st.one_of(st.text(), st.integers(), st.floats(), st.none(), st.booleans(), st.lists(st.integers())))
def test_whatever_is_read_is_bounded_or_refused(value):
    for read in (whole_number, real_number):
        try:
            assert abs(read(value)) <= LARGEST_COUNT
        except ValueError:
            continue


@pytest.mark.parametrize("value", ["9" * 20, "9" * 5000, "[1, {a = " + "9" * 30 + "}]", "0x" + "f" * 20, "[" * 5000])
def test_toml_holds_no_number_that_64_bits_do_not(value):
    with pytest.raises(ConfigError, match="is not TOML"):
        parse_toml(f"a = {value}", "asap.toml")


@pytest.mark.parametrize("key", ["a.", "a . ", "'a'.", '"a" .'])
def test_a_key_of_thousands_of_parts_is_refused_before_it_takes_their_square(key):
    with pytest.raises(ConfigError, match="hundred parts"):
        parse_toml(f"{key * 5000}a = 1", "asap.toml")
    assert parse_toml("a.b.c = 'one. two. three'", "asap.toml")
