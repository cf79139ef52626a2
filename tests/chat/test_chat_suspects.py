"""What is suspected to hold the run back, and reports beside what is asked of them."""

import pytest

from tests.chat.conversations import ask

pytestmark = pytest.mark.slow


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("that can't be compute", "Compute is the largest part of the step"),
        ("so it's the bubble?", "no part of the step is the pipeline bubble"),
        ("must be the host", "The host is not the largest part of the step"),
        ("should we worry about collectives", "Communication is not the largest part of the step"),
        ("maybe ib is at fault", "If yours is slower, ask with its rate"),
        ("really sure it's the model axis and not jitter?", "there is no noise of steps in it"),
    ],
)
def test_what_is_suspected_is_told_its_share(text, said, megatron):
    assert said in ask(megatron, text).text


def test_custom_kernels_are_what_a_profile_cannot_place(start):
    text = ask(start("paper-v5p-512"), "should we tune the custom kernels then?").text
    assert "opaque, not inefficient" in text
    assert "cost_estimate" in text


@pytest.mark.parametrize(
    "text", ["are the collectives even hidden", "which collectives are those, and do they overlap"]
)
def test_a_profile_without_axes_says_what_it_knows_of_collectives(text, start):
    said = ask(start("paper-v5p-512"), text).text
    assert "20.9 % of the listed time goes to collectives" in said
    assert "How much of it is hidden behind compute is not in these facts" in said


@pytest.mark.parametrize("text", ["tps ~1500 per gpu, any clue why", "tokens/s per gpu is like 1500, any ideas?"])
def test_a_rate_whose_unit_stands_before_it_is_recorded_and_what_is_asked_is_answered(text, megatron):
    answer = ask(megatron, text)
    assert [fact.value for fact in answer.evidence] == [1500 * 16]
    assert "do not understand" not in answer.text


def test_a_rate_that_is_too_low_for_all_chips_is_asked_about(megatron):
    answer = ask(megatron, "tps: 1500")
    assert not answer.evidence
    assert "Is that of each chip" in answer.text


def test_hbm_that_was_measured_is_set_beside_what_was_predicted(megatron):
    said = ask(megatron, "hbm peaks at 60 GiB now", "so your memory figure is off")
    assert "of HBM, measured 60.0 GiB" in said.text
