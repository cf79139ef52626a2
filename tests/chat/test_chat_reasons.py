"""Why a plan leads, what is on already, what to capture and to set."""

import pytest

from tests.chat.conversations import ask

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("text", ["why does 1 come before 3?", "how can 1 be ahead of 3 with a longer step?"])
def test_an_order_is_explained_by_what_counts(text, three):
    said = ask(three, text).text
    assert "proposal 1 counts +" in said
    assert "proposal 3 counts +" in said
    assert "predicted gain" in said


@pytest.mark.parametrize("text", ["does zero-3 bring anything?", "what about ZeRO stage 3"])
def test_zero_3_is_fsdp_and_may_be_on(text, dense, too_large):
    assert "ZeRO-3 is FSDP here" in ask(dense, text).text
    assert "It is on already: data=64 remat=full shards them over all 64 of 64 devices." in ask(too_large, text).text


@pytest.mark.parametrize(
    "text", ["is the distributed optimizer included?", "did you know that zero-1 is on", "disable dist opt"]
)
def test_the_distributed_optimizer_is_answered_for(text, megatron):
    said = ask(megatron, text).text
    assert "The distributed optimizer (ZeRO-1) is" in said
    assert "without it: step time" in said


def test_nothing_is_captured_of_a_run_that_does_not_fit(too_large, dense):
    assert "nothing can be captured of it before it runs" in ask(too_large, "what do I trace next?").text
    assert ask(dense, "what do I trace next?").text.startswith("Capture next:")


def test_flags_may_be_of_the_compiler_or_the_launcher(dense):
    said = ask(dense, "which flags should we turn on?").text
    assert "Compiler flags" in said
    assert "as MaxText overrides" in said
    assert "as MaxText overrides" not in ask(dense, "which XLA flags should we turn on?").text


@pytest.mark.parametrize("text", ["cp=2 instead of tp", "why not cp 2 rather than tensor parallelism?"])
def test_a_degree_in_place_of_an_axis_takes_that_axis_out(text, dense):
    said = ask(dense, text).text
    assert "data=32 seq=2" in said
    assert "seq=2 model=4" not in said


def test_an_mfu_is_set_beside_the_measured_one(dense):
    ask(dense, "our step takes 9.6 s")
    said = ask(dense, "is 40 % mfu good?").text
    assert "What runs now reaches 37" in said


@pytest.mark.parametrize(
    "text", ["which is the cheapest layout per token at $2 per chip hour?", "what's the cheapest plan per token"]
)
def test_the_cheapest_plan_is_a_choice(text, dense):
    answer = ask(dense, text)
    assert answer.topic == "rank by"
    assert "lowest cost per token" in answer.text
