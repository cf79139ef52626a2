"""Figures as they are typed: several steps in a row, a figure without a unit, the unit a line later."""

import pytest

from asap.evidence.claims import Claim
from tests.chat.conversations import ask

pytestmark = pytest.mark.slow


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("steps: 11.31, 11.29, 11.40", 11.31), ("iteration times (ms): 11310 11290 11300", 11.3),
        ("console prints step 11.3, 11.2 and 11.4", 11.3), ("11.31 s, 11.29 s, 11.30 s per step", 11.3),
    ],
)  # fmt: skip
def test_steps_in_a_row_are_their_median(text, seconds, dense):
    answer = ask(dense, text)
    (fact,) = answer.evidence
    assert (fact.claim, fact.value) == (Claim.STEP_TIME, pytest.approx(seconds))
    assert fact.plan == dense.conversation.study.plan
    assert "in the median" in answer.text


@pytest.mark.parametrize("text", ["steps 10, 20, 30 went well", "steps: 11.3, 45.7", "what if layers 2, 4, 6 were moe"])
def test_numbers_in_a_row_that_are_no_steps_are_none(text, dense):
    assert not ask(dense, text).evidence


@pytest.mark.parametrize(
    "text", ["we are at 11.7 now", "proposal 2 gave 11.7", "i see about 11.7", "clocked 11.7 today"]
)
def test_a_figure_without_a_unit_is_asked_about(text, dense):
    answer = ask(dense, text)
    assert "What is 11.7: seconds a step" in answer.text
    assert not answer.evidence


@pytest.mark.parametrize(
    ("text", "claim", "value"),
    [("seconds", Claim.STEP_TIME, 11.7), ("it is the step time", Claim.STEP_TIME, 11.7), ("mfu", Claim.MFU, 0.117)],
)
def test_the_unit_may_follow(text, claim, value, dense):
    ask(dense, "we are at 11.7 now")
    (fact,) = ask(dense, text).evidence
    assert (fact.claim, fact.value) == (claim, pytest.approx(value))


def test_the_unit_and_the_plan_may_follow(dense):
    second = dense.conversation.order[1]
    ask(dense, "clocked 11.7 today")
    (fact,) = ask(dense, "seconds a step, on proposal 2").evidence
    assert (fact.plan, fact.value) == (second, 11.7)


def test_a_unit_is_of_the_figure_just_before_alone(dense):
    ask(dense, "clocked 11.7 today", "what is the bottleneck?")
    assert not ask(dense, "seconds").evidence


def test_whether_a_figure_is_good_may_be_asked_in_a_word(dense):
    answer = ask(dense, "step is 11.5 s, normal?")
    assert answer.evidence
    assert "MFU" in answer.text
