"""Lines that only what was said before gives a meaning: agreement, decisions, "why not?", comparisons with now."""

import pytest

from asap.evidence.claims import Claim
from tests.chat.conversations import ask

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("text", ["makes sense", "k", "hm ok", "yes please", "fair enough", "right, got it"])
def test_agreement_changes_nothing_and_says_what_is_next(text, dense):
    answer = ask(dense, text)
    assert answer.topic == "thanks"
    assert not answer.evidence
    assert f"test proposal 1, {dense.conversation.order[0]}" in answer.text


def test_agreement_to_what_was_not_understood_is_not_taken_for_an_answer(dense):
    ask(dense, "asdf qwer xyzzy")
    assert "had not understood" in ask(dense, "yes").text
    assert "No to what?" in ask(dense, "nope").text


@pytest.mark.parametrize("text", ["ok go with 2", "yes, let's take the second one", "2 it is", "fine, proposal 2 then"])
def test_a_decision_gives_the_line_for_the_launcher_and_leaves_the_order(text, dense):
    order = list(dense.conversation.order)
    answer = ask(dense, text)
    assert f"{order[1]} as MaxText overrides:" in answer.text
    assert "the order stays" in answer.text
    assert not answer.evidence
    assert dense.conversation.order == order


def test_why_not_alone_is_of_the_plan_that_was_spoken_of(dense):
    assert "Why not what?" in ask(dense, "why not?").text
    ask(dense, "what about tp=8")
    assert "data=8 model=8" in ask(dense, "why not?").text
    ask(dense, "explain proposal 1")
    assert "Why not what?" in ask(dense, "why not?").text


def test_a_comparison_without_a_subject_sets_the_plan_that_was_spoken_of_against_now(dense):
    ask(dense, "what about tp=8")
    said = ask(dense, "and slower by how much").text
    assert "Against what runs now, data=16 model=4" in said
    assert "\ndata=8 model=8" in said


def test_a_gain_that_is_quoted_is_weighed(dense):
    gain = dense.conversation.proposals[0].prediction.relative_step_time
    answer = ask(dense, f"only {abs(gain.value - 1) * 100:.1f}%? meh")
    assert answer.topic == "worth it"
    assert "by which undisturbed steps vary" in answer.text


def test_a_grid_without_axes_is_asked_about(dense):
    assert "Of which axes is 8x2x4?" in ask(dense, "what about 8x2x4").text


def test_still_first_is_answered_with_yes_or_no(dense):
    assert ask(dense, "is 1 still the best").text.startswith("Yes")
    ask(dense, "proposal 1 ran out of memory")
    assert ask(dense, "does #1 still win").text.startswith("No")


def test_a_failure_without_a_plan_is_asked_about_and_taken_once_it_is_named(dense):
    first = dense.conversation.order[0]
    answer = ask(dense, "it OOMed")
    assert "Which plan?" in answer.text
    assert not answer.evidence
    (fact,) = ask(dense, "the first one").evidence
    assert (fact.claim, fact.plan) == (Claim.OUT_OF_MEMORY, first)


def test_the_current_run_is_a_plan_that_failed(too_large):
    ask(too_large, "it OOMed")
    (fact,) = ask(too_large, "ours").evidence
    assert fact.plan == too_large.conversation.study.plan


def test_a_question_is_no_answer_to_which_plan(dense):
    ask(dense, "it crashed")
    assert not ask(dense, "why is 2 worse").evidence


def test_a_digit_before_what_happened_is_a_proposal(dense):
    second = dense.conversation.order[1]
    (fact,) = ask(dense, "2 oomed").evidence
    assert fact.plan == second


def test_it_is_not_what_runs_already_that_is_settled_on(dense):
    ask(dense, "what fills the HBM?")
    assert f"{dense.conversation.order[0]} as MaxText overrides:" in ask(dense, "ok lets go with it").text


@pytest.mark.parametrize("text", ["why's that not in your top 3", "so slower by half?", "mfu of 20% is low, why"])
def test_a_number_in_a_question_on_the_answer_changes_nothing(text, dense):
    ask(dense, "what if we had 128 chips")
    answer = ask(dense, text)
    assert not answer.evidence
    assert "instead of" not in answer.text


def test_a_dense_model_has_no_experts_to_choose_from(dense):
    assert "a dense model has no experts" in ask(dense, "top-2 routing?").text


@pytest.mark.parametrize(
    ("question", "topic"),
    [
        ("how efficient is that all-reduce against the roofline?", "roofline"),
        ("is there some XLA flag that would hide the collectives too?", "xla flags"),
        ("what do your notes know about reduce-scatter being slow?", "principle"),
    ],
)
def test_the_name_of_a_collective_asks_for_nothing_less(start, say, question, topic):
    assert say(question, start()).topic == topic


def test_a_figure_is_no_thanks(dense):
    assert "You are welcome" not in ask(dense, "got 188 w/ 1").text
    assert "You are welcome" in ask(dense, "got it, thanks a bunch").text
