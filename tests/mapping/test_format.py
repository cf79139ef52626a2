from hypothesis import given, settings
from hypothesis import strategies as st

from asap.mapping.language.format import format_program
from asap.mapping.language.grammar import ALGORITHMS, LAYOUTS, MEMORIES, TYPES
from asap.mapping.language.parse import parse
from asap.plans import Remat

NAMES = st.sampled_from(["query", "A", "_x9", "mesh", "row", "none_", "layers"])
PATTERNS = NAMES | st.sampled_from(["*", "expert_*", "*up", "a*b*"])
COUNTS = st.integers(1, 10**9)
SPACES = st.text(" \t", min_size=1, max_size=3)
COMMENTS = st.text(st.characters(exclude_categories=["C"], exclude_characters="\x85\u2028\u2029"), max_size=12)


def listed(items, most=3):
    return st.lists(items, min_size=1, max_size=most).map(", ".join)


def expressions():
    leaves = st.integers(0, 99).map(str) | st.sampled_from(["i", "j"])
    operators = st.sampled_from(["+", "-", "*", "/", "%", "<", "<=", ">", ">=", "==", "!="])
    return st.recursive(
        leaves,
        lambda inner: (
            st.builds("({}){}({})".format, inner, operators, inner)
            | st.builds("{}{}{}".format, leaves, st.sampled_from("+-*/%"), leaves)
            | st.builds("-({})".format, inner)
            | st.builds("({})?({}):({})".format, inner, inner, inner)
        ),
        max_leaves=8,
    )


def decisions():
    counts = listed(COUNTS.map(str)).map("({})".format)
    layers = st.just("") | st.builds(" in layers {}..{}".format, COUNTS, COUNTS) | COUNTS.map(" in layers {}".format)
    degree = st.builds("{}{}={}".format, st.sampled_from(["", "dcn."]), NAMES, COUNTS)
    return st.one_of(
        st.lists(degree, min_size=1, max_size=4).map(lambda degrees: f"mesh {' '.join(degrees)}"),
        st.sampled_from(["order row", "order col", "order fold"]),
        counts.map("order block{}".format),
        expressions().map("order f(i,j)={}".format),
        st.builds("{} {} by {} over {}{}".format, st.sampled_from(["shard", "constrain"]), listed(PATTERNS), NAMES,
                  listed(NAMES) | st.just("none"), layers),
        st.builds("place {} on {}{}".format, listed(PATTERNS), st.sampled_from(MEMORIES), layers),
        st.builds("layout {} {}{}".format, listed(PATTERNS), st.sampled_from(LAYOUTS), layers),
        st.builds("dtype {} {}{}".format, listed(PATTERNS), st.sampled_from(TYPES), layers),
        st.builds("remat {}{}".format, st.sampled_from([*Remat]), layers),
        st.builds("{} {}".format, st.sampled_from(["microbatches", "pipeline_repeats", "panels"]), COUNTS),
        st.sampled_from(ALGORITHMS).map("algorithm {}".format),
        counts.map("grid {}".format),
        st.sampled_from(["stationary A", "stationary B", "stationary C", "overlap on", "overlap off", "halo 4",
                         "exchange gather", "exchange all_to_all"]),
    )  # fmt: skip


@st.composite
def programs(draw):
    lines = draw(st.lists(decisions() | COMMENTS.map("#{}".format) | st.just(""), max_size=6))
    return "\n".join(draw(SPACES).join(line.split(" ")) if "#" not in line else line for line in lines)


@settings(max_examples=50)
@given(programs())
def test_format_keeps_the_meaning_and_is_idempotent(text):
    program, wrong = parse(text)
    assert wrong == ()
    formatted = format_program(program)
    again, wrong = parse(formatted)
    assert wrong == ()
    assert again.decisions == program.decisions
    assert [line.comment for line in again.lines if line.comment] == [
        line.comment for line in program.lines if line.comment
    ]
    assert format_program(again) == formatted


def test_comments_and_the_order_of_lines_stay():
    text = "\n\n# first\nremat   full  #why\n\n\n\nmesh data=4   dcn.data=2\n\n"
    assert format_program(parse(text)[0]) == "# first\nremat full  # why\n\nmesh data=4 dcn.data=2\n"


def test_brackets_stay_where_they_mean_something():
    text = "order f(i, j) = -(i + j) * (3 - (2 - 1)) - ((i < j) == 1) + (i ? j : 0)\n"
    assert format_program(parse(text)[0]) == text
    assert format_program(parse("order f(i,j)=((i*4))+(j)")[0]) == "order f(i, j) = i * 4 + j\n"


def test_the_order_of_lines_means_nothing_and_keywords_may_name_tensors():
    assert parse("shard order by mesh over full")[1] == ()
