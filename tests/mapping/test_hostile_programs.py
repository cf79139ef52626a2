import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from asap.mapping.check import check
from tests.cases import kept
from tests.mapping.programs import DENSE, SLICE

TEXT = kept(__file__)["TEXT"]
WORDS = TEXT.split()


def refused_with_places(text):
    for each in check(text, DENSE, SLICE).feedback:
        assert each.line >= 1
        assert each.column >= 1
        assert each.line <= text.count("\n") + 1
        assert each.explanation
        assert each.suggestion


@given(st.text(max_size=200))
def test_any_text_is_refused_at_a_place(text):
    refused_with_places(text)


@pytest.mark.parametrize("seed", range(4))
def test_any_words_of_the_language_are_refused_at_a_place(seed):
    draw = random.Random(seed)
    for _ in range(60):
        refused_with_places(draw.choice([" ", "\n"]).join(draw.choices(WORDS, k=draw.randrange(1, 60))))


@pytest.mark.parametrize(
    "expression",
    ["(" * 480 + "i" + ")" * 480, "-" * 900 + "i", "i" + "+i" * 400, "i?" * 300 + "i" + ":i" * 300, "(" * 900],
)
def test_deep_nesting_is_refused(expression):
    assert check(f"mesh data=16\norder f(i, j) = {expression}", DENSE, SLICE).feedback


def test_many_lines_that_overlap_are_checked():
    lines = [f"shard * by embed over none in layers {n % 40}..{n % 40 + 40}" for n in range(1_500)]
    assert check("\n".join(["mesh data=16", *lines]), DENSE, SLICE).feedback == ()
