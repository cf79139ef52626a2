"""What a plan saves, what a limit costs, what too little room is left, whose figure it is, and what is to blame."""

import pytest

from tests.chat.conversations import ask

pytestmark = pytest.mark.slow


def test_time_on_chips_is_set_against_what_the_plan_saves(dense):
    text = ask(dense, "is it worth a day of 64 v5e").text
    assert "24.0 hours on 64 chips are 1540 chip-hours" in text
    assert "earns them back after" in text
    assert "by which undisturbed steps vary" in text


def test_steps_a_price_and_another_plan_go_on_with_what_is_saved(three):
    first, second, _ = three.conversation.order
    assert f"Over 40,000 steps {first} is expected to save" in ask(three, "we have 40k steps left").text
    assert "At $2.1 a chip-hour that is $" in ask(three, "at $2.1/gpu-h").text
    text = ask(three, "no I meant the second").text
    assert f"Over 40,000 steps {second} is expected to save" in text
    assert "At $2.1 a chip-hour" in text


def test_a_limit_costs_what_lies_between_the_first_with_it_and_without(dense):
    first = dense.conversation.order[0]
    text = ask(dense, "no offload please", "whats that cost us vs the first one").text
    assert f"first with the limit (nothing is kept in host memory): {dense.conversation.order[0]}" in text
    assert f"first without it: {first}" in text
    assert "Nothing:" in ask(dense, "the optimizer must stay", "what does that cost us?").text


def test_too_little_room_is_no_measurement_and_names_who_takes_less(dense):
    held = dense.conversation.proposals[0].prediction.memory.total.value / 2**30
    answer = ask(dense, f"{held:.1f} of 16 is too tight for us")
    assert not answer.evidence
    assert dense.conversation.order[0] == answer.focus
    assert "Nothing is recorded. Say how much a plan may take" in answer.text


def test_a_figure_is_traced_to_its_plan(dense):
    now = dense.conversation.proposals[0].prediction
    step = now.step_time.value
    text = ask(dense, f"where does {step:.2f} s come from?").text
    assert f"is the step time of {now.plan}, predicted" in text


def test_a_part_that_is_blamed_is_set_against_the_step(dense):
    text = ask(dense, "isnt tp=4 the real problem here?").text
    assert "all-reduce of model:" in text
    assert "of a step of" in text
    assert "the step waits most for" in text


def test_steps_are_no_tokens_of_a_sequence(dense):
    text = ask(dense, "we have 40k steps left").text
    assert "Over 40,000 steps" in text
    assert "sequence length" not in text
