"""No reader and no pattern takes the square of the length of hostile text."""

import pytest

from fuzzing.patterns import SHORT_INPUT, all_patterns, searched, slow
from fuzzing.scaling import scalings

pytestmark = pytest.mark.slow
ATTACKS = {"dashes": "-", "blanks": " ", "braces": "${", "new lines": "\n", "items": "- a\n", "letters": "a"}


def test_no_pattern_that_searches_takes_the_square_of_the_length():
    patterns = searched(all_patterns())
    assert len(patterns) > 300
    assert set(SHORT_INPUT) <= set(patterns.values())
    assert [one for pattern, at in patterns.items() if at not in SHORT_INPUT and (one := slow(pattern, at))] == []


@pytest.mark.parametrize("reader", ["train.sh", "train.yml"])
def test_the_time_of_a_reader_grows_with_the_length_of_its_text(reader):
    assert [one for one in scalings(20_000, reader, ATTACKS) if not one.ok] == []
