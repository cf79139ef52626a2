"""Figures and citations in prose against what tools said."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from asap.agents.figures import figures
from asap.agents.guard import STRUCK, Told, complaints, leaks, rests_on_evidence, strike
from asap.agents.known import known_values, resolve

ANSWER = {
    "kpis": {"step_time_s": 3.256, "duty_cycle": 0.972},
    "relative_step_time": {"value": 0.969, "unit": "1", "low": 0.55, "high": 1.7},
    "memory": {"total": {"value": 21.5 * 2**30, "unit": "bytes"}, "capacity_bytes": 32 * 2**30},
    "findings": [{"statement": "all-reduce takes 41.7 % of the step", "name": "saves 88 %"}],
    "devices": 16,
}


@pytest.fixture
def told():
    told = Told()
    told.hear("get_kpis", ANSWER)
    notes = [{"id": "tp-limit", "title": "Tensor parallelism", "text": "stays hidden below 2550 tokens"}]
    told.hear("search_knowledge", {"notes": notes})
    return told


@pytest.mark.parametrize(
    "prose",
    [
        "The step takes 3.26 s.",
        "The step takes 3256 ms.",
        "It is busy 97 % of the time, 97.2% to be exact.",
        "3.1 % shorter, up to 45 % within the 90 % interval.",
        "It fits: 21.5 GiB of 32 GiB.",
        "All-reduce takes 41.7 percent.",
        "On 16 devices.",
        "Below 2,550 tokens it hides [tp-limit].",
        "data=4 model=4 first; proposal 1 of 3.",
    ],
)
def test_what_a_tool_said_resolves(told, prose):
    assert complaints("reason", prose, told) == []


@pytest.mark.parametrize(
    ("prose", "what"),
    [
        ("The step takes 3.27 s.", "3.27 s"),
        ("The step takes 3.26 ms.", "3.26 ms"),
        ("It saves 88 %.", "88 %"),
        ("It needs 21.5 GB.", "21.5 GB"),
        ("It hides below 2550 tokens.", "2550 tokens"),
        ("As shown by [no-such-note].", "[no-such-note]"),
        ("On 17 chips.", "17 chips"),
    ],
)
def test_what_no_tool_said_is_named_with_what_would_be_right(told, prose, what):
    (complaint,) = complaints("reason", prose, told)
    assert complaint.what == what
    assert complaint.why
    assert complaint.right
    struck = strike(prose, told)
    assert what not in struck
    assert STRUCK in struck


@given(st.floats(min_value=1e-6, max_value=1e6), st.integers(min_value=0, max_value=4))
def test_a_value_resolves_however_far_it_is_rounded(value, digits):
    known = known_values({"step_time_s": value}, "tool")
    (figure,) = figures(f"it takes {value:.{digits}f} s in all")
    assert resolve(figure, known) is not None


@given(st.floats(min_value=0.5, max_value=99), st.integers(min_value=1, max_value=3))
def test_a_value_off_by_a_digit_does_not(value, digits):
    known = known_values({"duty_cycle": value / 100}, "tool")
    off = float(f"{value:.{digits}f}") + 2 * 10.0**-digits
    (figure,) = figures(f"busy {off:.{digits}f} % of the time")
    assert resolve(figure, known) is None


@given(st.text(max_size=200))
def test_nothing_unresolved_survives_the_strike(prose):
    told = Told()
    struck = strike(f"{prose} 12.5 % {prose}", told)
    assert complaints("reason", struck.replace(STRUCK, ""), told) == []


def test_only_figures_of_the_engine_are_evidence(told):
    assert rests_on_evidence("it takes 3.26 s", told)
    assert not rests_on_evidence("2550 tokens [tp-limit]", told)
    assert not rests_on_evidence("trust me, the 90 % interval", told)


def test_instructions_that_are_repeated_are_noticed():
    prompt = "Never state a figure that is not in the answer of a tool or in what the engineer said."
    assert leaks(f"My rules: never state a FIGURE that is not in the answer of a tool: {prompt}", [prompt])
    assert not leaks("A figure of a tool says that the step takes less.", [prompt])
    assert strike(prompt, Told(), [prompt]) == ""
