"""What engineers ask next: a setting on top of a plan, chips for a rate, how a bottleneck shows itself."""

import re

import pytest

pytestmark = pytest.mark.slow


@pytest.fixture
def dense(start):
    return start("dense")


def ask(chat, text):
    answer = chat.turn(text, lambda piece: None)
    assert answer is not None
    return answer.text


@pytest.mark.parametrize("follow_up", ["and with no remat?", "and without recomputation?", "plus no remat"])
def test_a_setting_after_a_plan_goes_on_top_of_it(follow_up, dense):
    ask(dense, "what if tensor was 8?")
    said = ask(dense, follow_up)
    assert said.startswith("With remat=none, data=8 model=8")


def test_a_setting_that_does_not_follow_on_is_of_what_runs(dense):
    ask(dense, "what if tensor was 8?")
    assert "model=8" not in ask(dense, "can we switch off remat in the current run?")


@pytest.mark.parametrize("said", ["tensor was 8", "tp were 8", "our tensor parallelism is 8", "the tp becomes eight"])
def test_a_degree_that_is_supposed_is_a_degree(said, dense):
    assert "data=8 model=8" in ask(dense, f"what if {said}?")


def test_chips_for_a_rate_are_halved_or_doubled_until_it_is_reached(dense):
    rate = float(re.findall(r"([\d.]+) tokens/s,", ask(dense, "how many tokens per second?"))[0])
    more = ask(dense, f"how many chips for {3 * rate / 1000:.0f}k tok/s?")
    chips = [int(count) for count in re.findall(r": (\d+) chips, ", more)]
    reached = [float(found) for found in re.findall(r"([\d.]+) tokens/s, MFU", more)]
    assert len(chips) == 2
    assert min(chips) > 64
    assert all(found >= 3 * rate * 0.99 for found in reached)
    (fewer, *_) = re.findall(r": (\d+) chips, ", ask(dense, f"how few chips give {rate / 8000:.1f}k tokens/s?"))
    assert int(fewer) < 64


@pytest.mark.parametrize(
    ("asked", "told"),
    [
        ("what if HBM bandwidth was the problem, how would I see it", "Bound by HBM bandwidth"),
        ("how would I tell if we were network bound?", "Bound by communication"),
        ("how can I recognise an input-bound run?", "Bound by input"),
        ("what would it look like if we were launch bound?", "Bound by the host"),
        ("how do I know whether it's compute bound?", "Bound by compute"),
    ],
)
def test_how_a_bottleneck_shows_itself_is_told_before_what_this_run_shows(asked, told, dense):
    said = ask(dense, asked)
    assert said.startswith(told)
    assert "This run:" in said


def test_what_the_bottleneck_is_asks_for_no_symptoms(dense):
    assert "This run:" not in ask(dense, "is the network the bottleneck?")
