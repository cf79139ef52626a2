import pytest
from hypothesis import given
from hypothesis import strategies as st

from asap.core.errors import ConfigError
from asap.core.numbers import LARGEST_COUNT, digits, parse_toml, real_number, whole_number
from asap.core.units import counted, format_bytes, format_percent, format_rate, format_seconds, significant
from tests.cases import cases


@cases("seconds, text")
def test_seconds(seconds, text):
    assert format_seconds(seconds) == text


def test_bytes_are_binary_and_rates_decimal():
    assert format_bytes(16 * 2**30) == "16.0 GiB"
    assert format_rate(918e12, "FLOP/s") == "918 TFLOP/s"


def test_a_small_share_is_not_shown_as_nothing():
    assert format_percent(0.0) == "0.0 %"
    assert format_percent(1e-5) == "<0.1 %"
    assert format_percent(0.865) == "86.5 %"


def test_one_is_singular():
    assert [counted(1, "run"), counted(2.0, "run"), counted(2.5, "doubling"), counted(1200, "line")] == [
        "1 run", "2 runs", "2.5 doublings", "1,200 lines",
    ]  # fmt: skip


@given(st.floats(min_value=1e-6, max_value=1e6))
def test_significant_keeps_three_digits(value):
    assert float(significant(value).replace(",", "")) == pytest.approx(value, rel=0.005)


def test_significant_rounds_what_is_large_too():
    assert significant(35656.45) == "35,700"
    assert significant(2.5165) == "2.52"


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
