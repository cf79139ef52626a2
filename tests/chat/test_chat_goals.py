"""Answers on what somebody wants: the largest batch, a target, a review, what comes afterwards, the same numerics."""

import re

import pytest

from asap.evidence.claims import Claim
from tests.chat.conversations import ask


def test_the_largest_batch_fits_and_the_next_one_does_not(dense):
    said = ask(dense, "what is the largest batch that fits?").text
    (largest,) = re.findall(r"what runs now \([^)]*\): (\d+) \(", said)
    assert "(fits)" in said.splitlines()[1]
    assert f"{largest} ({int(largest) / 64:g} for each of 64 devices); step time" in said
    again = ask(dense, f"what if the batch is {int(largest) + 64}?").text.splitlines()[1]
    assert "(fits)" not in again


def test_the_longest_sequence_is_searched_in_thousands(dense):
    said = ask(dense, "how long can the context get before we run out of memory?").text
    (longest,) = re.findall(r"what runs now \([^)]*\): (\d+);", said)
    assert int(longest) % 1024 == 0


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (
            "what is the cheapest way to get 20% more throughput?",
            "a step that is 16.7 % shorter, 20.0 % more throughput",
        ),
        ("can we cut the step by 10 percent?", "a step that is 10.0 % shorter"),
        ("how could we make it twice as fast?", "None is likely to"),
        ("how do we reach an MFU of 5%?", "expected to reach that already"),
    ],
)
def test_a_target_is_answered_with_the_odds_of_each_proposal(dense, text, says):
    answer = ask(dense, text)
    assert answer.topic == "target"
    assert says in answer.text
    assert not answer.evidence


def test_a_smaller_target_is_likelier(dense):
    odds = []
    for share in (5, 15, 30):
        said = ask(dense, f"which plan gives {share}% more throughput?").text
        odds.append(max(int(each) for each in re.findall(r": (\d+) %;", said)))
    assert odds == sorted(odds, reverse=True)
    assert odds[0] > odds[-1]


def test_a_review_says_what_the_situation_is_and_what_to_do(dense):
    lines = ask(dense, "is there anything wrong with my config?").text.splitlines()
    assert "configurations the best bet is expected to take" in lines[0]
    assert lines[1].startswith("Modelled, not measured")
    assert lines[-1].startswith("1. ")


def test_what_comes_after_the_first_is_the_second(dense):
    order = [str(plan) for plan in dense.conversation.order]
    ask(dense, "what would you do first?")
    said = ask(dense, "and after that?").text
    assert f"2. {order[1]}" in said
    assert f"1. {order[0]}" not in said


def test_a_mesh_changes_no_numerics_and_a_lower_precision_does(dense):
    assert "nothing that is trained changes" in ask(dense, "does proposal 1 change the numerics?").text
    said = ask(dense, 'does "data=64 first_moment=bf16" keep the numerics?').text
    assert "nothing that is trained changes" not in said
    assert "moment" in said


def test_own_figures_are_of_what_runs_now_whatever_was_spoken_of(dense):
    ask(dense, "explain proposal 1")
    assert ask(dense, "what is my MFU?").text.startswith("what runs now")


def test_an_optimizer_whose_state_is_unknown_is_not_taken_for_adam(dense):
    for optimizer in ("shampoo", "8-bit adam"):
        assert "is not on record" in ask(dense, f"what if we used {optimizer}?").text
    assert "With optimizer lion" in ask(dense, "what if we used lion?").text


def test_thousands_of_nothing_that_is_named_are_a_sequence(dense):
    said = ask(dense, "what about 8k with the batch halved?").text
    assert "sequence length of 8192" in said
    assert "global batch of 128" in said


def test_half_of_an_axis_is_a_plan_with_half_of_it(dense):
    assert " model=2 " in f" {ask(dense, 'what would halving the tensor degree do?').text}"


def test_what_was_seen_to_run_stays_when_another_plan_runs_out_of_memory(dense):
    first, second, *_ = dense.conversation.order
    ask(dense, "proposal 2 measured 6.9 s")
    answer = ask(dense, "proposal 1 ran out of memory")
    assert [fact.claim for fact in answer.evidence] == [Claim.OUT_OF_MEMORY]
    left = [candidate.plan for candidate in dense.conversation.revised.ranked.candidates]
    assert second in left
    assert first not in left


def test_an_mfu_is_judged_by_published_ones(dense):
    assert "possible" in ask(dense, "is 50% MFU realistic?").text
    assert "more than any run has published" in ask(dense, "is an MFU of 85% realistic?").text
