import unicodedata

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from markdown_it import MarkdownIt
from markdown_it.common.utils import escapeHtml

from asap.core.text import fenced, markdown, plain, redact, told_apart

RENDER = MarkdownIt("commonmark").enable(["table", "strikethrough"])
HOSTILE = "\x1b[31mred\x1b[0m\u202e\n@everyone <img src=x> [a](http://b) `c` | d"


def test_plain_removes_terminal_control():
    assert plain(HOSTILE) == "[31mred[0m @everyone <img src=x> [a](http://b) `c` | d"


@given(st.lists(st.text("ab<,: ", min_size=1), unique_by=lambda text: plain(text)), st.integers(30, 50))
def test_texts_that_differ_are_shown_by_where_they_do(texts, limit):
    shown = told_apart([f"void Eigen::internal::EigenMetaKernel<{text}>" for text in texts], limit)
    assert len({*shown.values()}) == len(shown)
    assert max(map(len, shown.values()), default=0) <= limit


@pytest.mark.slow
@given(st.text())
def test_plain_is_one_printable_line(text):
    shown = plain(text)
    assert not any(unicodedata.category(c) in {"Cc", "Cf", "Zl", "Zp"} for c in shown)
    assert plain(shown) == shown


@given(st.text(), st.integers(min_value=1, max_value=50))
def test_plain_keeps_to_its_limit(text, limit):
    assert len(plain(text, limit)) <= limit


MARKUP = st.text('\\`*_{}[]()<>#|~@!&:;-+=.0 1ab\u00e9\u2192/"')


@given(st.text() | MARKUP)
@example("http://b javascript:c www.d e@f &lt; :smile:")
def test_markdown_shows_text_as_it_is(text):
    paragraph, item, cell = f"{markdown(text)}x", f"before\n\n- {markdown(text)}", f"|a|\n|-|\n|{markdown(text)} |"
    shown = escapeHtml(plain(text))
    assert RENDER.render(paragraph) == f"<p>{shown}x</p>\n"
    if shown:
        assert f"<li>{shown}</li>" in RENDER.render(item)
        assert f"<td>{shown}</td>" in RENDER.render(cell)
        assert RENDER.render(f"before\n{markdown(text)}") == f"<p>before\n{shown}</p>\n"


def test_markdown_keeps_its_source_readable():
    text = "Modelled, not measured: compute (58 %), -59.6 % with remat_policy=full, data 16→256!"
    assert markdown(text) == text
    assert markdown("-59.6 % (-85 to +9 %)") == "-59.6 % (-85 to +9 %)"


@given(st.text())
def test_a_fence_cannot_be_closed_from_inside(text):
    quoted = fenced(text + "</data>", 'a"b>')
    assert quoted.count("<") == 2
    assert quoted.endswith("\n</data>")


def test_redact_removes_keys():
    keys = ("AIza" + "x" * 35, "sk-" + "y" * 24, "ghp_" + "z" * 30, "hf_" + "w" * 30, "AKIA" + "A" * 16)
    for key in keys:
        assert key not in redact(f"before {key} after")
    assert redact("Authorization: Bearer abcdefghijklmnop1234") == "Authorization: Bearer [redacted]"
    assert redact("nothing to hide: 1234") == "nothing to hide: 1234"
