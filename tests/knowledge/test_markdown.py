import pytest
from hypothesis import given
from hypothesis import strategies as st

from asap.knowledge.notes.chunking import WORDS_PER_CHUNK, chunk_markdown, linear_maths, plain_markup, slug
from tests.cases import cases, kept

CHAPTER = kept(__file__)["CHAPTER"]


def test_headings_become_paths_and_anchors():
    chunks = chunk_markdown(CHAPTER, "train")
    assert [(chunk.headings, chunk.anchor) for chunk in chunks] == [
        (("How to Train",), ""), (("How to Train", "Data Parallelism"), "data-parallelism"),
        (("How to Train", "Data Parallelism", "What's the cost?"), "whats-the-cost"),
        (("How to Train", "Data Parallelism"), "data-parallelism-1"),
    ]  # fmt: skip


def test_code_details_footnotes_maths_and_tables_are_read():
    text = chunk_markdown(CHAPTER, "train")[1].text
    assert "Tokens are split (over X), T = B / X." in text
    assert '# not a heading either\nmesh = jax.make_mesh((4, 2), ("X", "Y"))' in text
    assert "The proof\nHidden text." in text
    assert "details" not in text
    assert chunk_markdown(CHAPTER, "train")[2].text == "| axis | bytes |\n| X | 2DF |"


def test_a_document_without_title_or_heading_has_its_fallback():
    (chunk,) = chunk_markdown("just words", "notes")
    assert chunk.headings == ("notes",)


def test_an_explicit_anchor_wins():
    (chunk,) = chunk_markdown("# A heading {#short}\n\nwords", "x")
    assert (chunk.anchor, chunk.headings) == ("short", ("x", "A heading"))


def test_directives_of_sphinx_are_text_or_silent():
    text = "```{note}\nMind the **mesh**.\n```\n\n```{toctree}\na.md\n```\n\nEnd."
    (chunk,) = chunk_markdown(text, "x")
    assert chunk.text == "Mind the mesh.\nEnd."


def test_an_equals_sign_on_a_line_of_maths_is_no_heading():
    (chunk,) = chunk_markdown("# Top\n\n$$A\n=\n\\frac{B}{C}$$\n", "x")
    assert (chunk.anchor, chunk.text) == ("top", "A = B / C")


def test_the_anchor_rule_is_the_books():
    assert slug("Fully-Sharded Data Parallelism (FSDP)") == "fully-sharded-data-parallelism-fsdp"
    assert slug("Appendix A: How real is the batch size > 240 rule?") == (
        "appendix-a-how-real-is-the-batch-size--240-rule"
    )


WORDS = st.lists(st.from_regex(r"[a-z]{2,7}", fullmatch=True), min_size=1, max_size=40).map(" ".join)


@pytest.mark.slow
@given(st.lists(WORDS, min_size=1, max_size=30))
def test_no_word_is_lost_or_moved_and_no_chunk_is_long(paragraphs):
    chunks = chunk_markdown("# Top\n\n" + "\n\n".join(paragraphs), "x")
    assert " ".join(chunk.text for chunk in chunks).split() == " ".join(paragraphs).split()
    assert all(len(chunk.text.split()) <= WORDS_PER_CHUNK for chunk in chunks)
    assert [chunk.part for chunk in chunks] == list(range(len(chunks)))


@given(st.text(alphabet="#`-*_[](){}<>$%|\n ab1"))
def test_any_document_is_survived(text):
    chunk_markdown(text, "x")


@cases("latex, linear")
def test_maths_becomes_linear_text(latex, linear):
    assert linear_maths(latex) == linear


@cases("source, text")
def test_markup_is_taken_off(source, text):
    assert plain_markup(source) == text


@given(st.text())
def test_any_text_is_survived(text):
    plain_markup(text)


@given(st.lists(st.from_regex(r"[a-z]{1,8}", fullmatch=True), min_size=1))
def test_plain_words_stay_as_they_are(words):
    assert plain_markup(" ".join(words)) == " ".join(words)
