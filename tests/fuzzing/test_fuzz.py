"""A small sample of scripts/measure fuzz: some mutations of the corpus break nothing, and no pattern is ambiguous."""

import re
from contextlib import suppress

import pytest
from hypothesis import Phase, given, settings

from asap.core.errors import AsapError
from fuzzing import scaling
from fuzzing.case import SLOW_AND_LARGE, limits
from fuzzing.patterns import every_pattern, is_nested
from fuzzing.targets import TARGETS

SAMPLED = (
    *("maxtext", "megatron", "plan", "mapping", "experiment", "history", "trace", "run-log"),
    *("event", "artifact", "policy"),
)
SAMPLE = settings(
    max_examples=15, derandomize=True, deadline=None, database=None, phases=(Phase.generate,),
    suppress_health_check=SLOW_AND_LARGE,
)  # fmt: skip


@pytest.fixture(autouse=True)
def home(tmp_path, monkeypatch):
    monkeypatch.setenv("ASAP_HOME", str(tmp_path))
    monkeypatch.setenv("ASAP_DEBUG", "1")


@pytest.mark.slow
@pytest.mark.parametrize("name", SAMPLED)
def test_mutated_input_breaks_nothing(name):
    inputs, check = TARGETS[name].prepare()

    @SAMPLE
    @given(inputs)
    def attack(case):
        with limits():
            check(case)

    attack()


def test_every_reader_whose_growth_is_measured_reads_a_line_or_refuses_it(tmp_path):
    for read in scaling.readers(tmp_path).values():
        with suppress(AsapError, ValueError):
            read("a: 1\n")


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
