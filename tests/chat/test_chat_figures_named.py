"""Parts of the step that are to be smaller, what a figure of HBM is, the size of the model, budgets, kept tensors."""

import pytest

from tests.chat.conversations import ask

pytestmark = pytest.mark.slow


def test_what_makes_a_part_of_the_step_smaller(dense, megatron):
    said = ask(dense, "how do we get rid of the allreduce").text
    assert said.startswith("all-reduce of tensor parallelism: ")
    assert f"1. {dense.conversation.order[0]}" in said
    assert ask(megatron, "how can i reduce the comms").text.startswith("all-reduce of tensor parallelism")


def test_it_is_what_was_said_to_hold_the_run_back(dense):
    ask(dense, "what is the bottleneck")
    assert "of what runs now" in ask(dense, "how do we get rid of it").text


@pytest.mark.parametrize(
    "text", ["how accurate is the hbm figure", "is the hbm a peak or an average", "are you sure it won't oom"]
)
def test_what_a_figure_of_hbm_is(text, dense):
    said = ask(dense, text).text
    assert "in 90 % of cases" in said
    assert "P(fits)" in said
    assert "the peak of a step on the fullest chip" in said


def test_the_model_is_that_on_record(dense):
    assert "6.74 B parameters" in ask(dense, "how many params is that").text
    answer = ask(dense, "our model is actually 13B")
    assert "The chat cannot make it 13 B: nothing is recorded" in answer.text
    assert not answer.evidence
    assert "The chat cannot" not in ask(dense, "it is a 7B").text


def test_a_budget_is_money_and_no_sequence(dense):
    assert "500k is no price of a chip hour" in ask(dense, "budget is 500k, does it fit").text
    ask(dense, "what does 1T tokens cost at $2 per chip hour")
    said = ask(dense, "our budget is 500k").text
    assert "$500,000 pays 250,000 chip hours at $2" in said
    assert "times the budget of $500,000" in said


@pytest.mark.parametrize(
    ("text", "remat"),
    [
        ("save only qkv", "save_qkv_proj"),
        ("how about saving just the attn out", "context"),
        ("recompute everything but qkv and o_proj", "save_dot_except_mlp"),
        ("keep only query, key and the gate", "query+key+gate"),
    ],
)
def test_tensors_that_are_kept_are_a_policy(text, remat, dense):
    assert f"With remat={remat}," in ask(dense, text).text


def test_so_many_of_these_are_chips(dense):
    assert "With 128 chips" in ask(dense, "what if we had 128 of these").text
    assert "With 32 chips" in ask(dense, "or half as many").text


def test_a_short_with_a_slash_is_english(dense):
    assert "nothing is kept in host memory" in ask(dense, "anything w/o offload").text
