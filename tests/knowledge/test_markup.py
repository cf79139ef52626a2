import pytest
from hypothesis import given
from hypothesis import strategies as st

from asap.knowledge.notes.chunking import linear_maths, plain_markup


@pytest.mark.parametrize(
    ("latex", "linear"),
    [
        (r"\frac{B}{X} > \frac{C}{W_\text{ici}}", "B / X > C / W_ici"),
        (r"T_\text{math} = \frac{2 \cdot B D F}{X \cdot C}", "T_math = (2 · B D F) / (X · C)"),
        (r"\text{In}[B_X, D] \cdot_D W_\text{in}[D, F]", "In[B_X, D] ·_D W_in[D, F]"),
        (r"\sqrt{\frac{B}{M_{X}}} \leq 10^{12}", "sqrt(B / M_X) ≤ 10^12"),
        (r"\begin{align*} a &= b \\ c &= d \end{align*}", "a = b c = d"),
        (r"\lceil |X| / 2 \rceil \approx \infty", "ceil( |X| / 2 ) ≈ ∞"),
    ],
)
def test_maths_becomes_linear_text(latex, linear):
    assert linear_maths(latex) == linear


@pytest.mark.parametrize(
    ("source", "text"),
    [
        ("**bold** and *soft* and `code`", "bold and soft and code"),
        ("W<sub>in</sub> is 10<sup>3</sup>", "W_in is 10^3"),
        ("see [the book](https://example.org/a_b) and ![plot](x.png)", "see the book and plot"),
        ("bf16<d-footnote>two bytes</d-footnote> here<d-cite key='zero'></d-cite>", "bf16 (two bytes) here"),
        ("{% include figure.liquid path='a.png' caption=\"<b>Figure:</b> a mesh\" %}", " Figure:  a mesh"),
        ("{% details Click for the proof. %}", "Click for the proof."),
        ("a {{ site.url }} b", "a   b"),
        ("2 &lt; 3 <!-- hidden --> x", "2 < 3   x"),
        (
            "keep <your-bucket> and snake_case_name and a * b * c",
            "keep <your-bucket> and snake_case_name and a * b * c",
        ),
        ("costs $5 and $6", "costs $5 and $6"),
        ("a note[^1]", "a note"),
        ("{ref}`the guide <guide>`", "the guide"),
        ("is $$X / 2$$ hops, $C$ FLOPs", "is X / 2 hops, C FLOPs"),
    ],
)
def test_markup_is_taken_off(source, text):
    assert plain_markup(source) == text


@given(st.text())
def test_any_text_is_survived(text):
    plain_markup(text)


@given(st.lists(st.from_regex(r"[a-z]{1,8}", fullmatch=True), min_size=1))
def test_plain_words_stay_as_they_are(words):
    assert plain_markup(" ".join(words)) == " ".join(words)
