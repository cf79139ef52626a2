from hypothesis import given
from hypothesis import strategies as st

from asap.knowledge.index.terms import readable, terms
from tests.cases import cases


def concepts(text):
    return {term for term in terms(text) if term.startswith("c_")}


@cases("one, other")
def test_words_for_the_same_thing_share_a_concept(one, other):
    assert concepts(one) & concepts(other)


def test_different_things_share_none():
    assert not concepts("pipeline bubble") & concepts("systolic array")


def test_british_and_american_spelling_and_plurals_are_one():
    assert set(terms("utilisations parallelised")) == set(terms("utilization parallelize"))


def test_function_words_carry_nothing():
    assert terms("what is the of and") == ()


def test_terms_are_shown_as_the_query_wrote_them():
    assert readable(terms("gathering weights"), "gathering weights") == ["gathering", "weights", "fsdp", "parameters"]


@given(st.text())
def test_any_text_has_terms_of_letters_and_digits(text):
    assert all(term.replace("_", "").isalnum() and term == term.lower() for term in terms(text))
