import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from asap.core.text import fenced, markdown, plain, redact

HOSTILE = "\x1b[31mred\x1b[0m\u202e\n@everyone <img src=x> [a](http://b) `c` | d"


def test_plain_removes_terminal_control():
    assert plain(HOSTILE) == "[31mred[0m @everyone <img src=x> [a](http://b) `c` | d"


@pytest.mark.slow
@given(st.text())
def test_plain_is_one_printable_line(text):
    shown = plain(text)
    assert not any(unicodedata.category(c) in {"Cc", "Cf", "Zl", "Zp"} for c in shown)
    assert plain(shown) == shown


@given(st.text(), st.integers(min_value=1, max_value=50))
def test_plain_keeps_to_its_limit(text, limit):
    assert len(plain(text, limit)) <= limit


@given(st.text())
def test_markdown_leaves_no_markup(text):
    import html

    escaped = markdown(text)
    bare = escaped
    while "&#" in bare:
        start = bare.index("&#")
        bare = bare[:start] + bare[bare.index(";", start) + 1 :]
    assert not set(bare) & set("\\`*_{}[]()<>#|~@!")
    assert html.unescape(escaped) == plain(text)


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
