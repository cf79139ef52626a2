"""No pattern of the package takes exponential time: none repeats a repetition ambiguously."""

import re

import pytest

from fuzzing.patterns import every_pattern, is_nested

AMBIGUOUS = (
    r"(a+)+$", r"(a*)*", r"(\s*a?\s*)*b", r"(\w+\s?)+$", r"([a-z]+|[a-z0-9]+)*!", r"(.*a){25,}", r"((ab)*c?)*d",
    r"^(([a-z])+.)+[A-Z]([a-z])+$", r"(?:\d+|\w+)+:", r"(x+x+)+y", r"(?:a{2,}b?)+c", r"(\S+\s*)+=", r"(?:[\w.-]+\.?)+@",
    r"(?i)(?:A+|a)+!", r"(?:[^=]*=)*[^=]*(?:=[^;]*)*;?(?:.+,?)*$",
)  # fmt: skip
"""Known from published attacks, and their kin."""
CLEAR = (
    r"(a+,)+", r"(?:\w+=\w+ )+", r"\w+(?:\.\w+)*", r"(?:a{1,3})+", r"((?:a+)b)+", r"(?:[^\"\\]+|\\.)\"", r"(?>a+)+b",
    r"(a++)+b", r"(?:\[[^\]]*\])*", r"(?:-\w+ )*", r"(?:\"[^\"]*\",)+",
)  # fmt: skip


@pytest.mark.parametrize("pattern", AMBIGUOUS)
def test_ambiguous_repetitions_are_found(pattern):
    assert is_nested(pattern)


@pytest.mark.parametrize("pattern", CLEAR)
def test_clear_ones_are_not(pattern):
    re.compile(pattern)
    assert not is_nested(pattern)


def test_no_pattern_of_the_package_is_ambiguous():
    patterns = every_pattern()
    assert len(patterns) > 500
    assert [place for (pattern, flags), place in patterns.items() if is_nested(pattern, flags)] == []
