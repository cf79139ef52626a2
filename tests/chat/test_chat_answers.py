"""Questions that need more than a topic: what a word means, what is split, what is kept, what is taken for granted."""

import pytest

pytestmark = pytest.mark.slow


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("what does P(faster) mean?", "probability that the plan has a shorter step"),
        ("how do I read the column counts?", "decides the order"),
        ("is the optimizer state sharded?", "optimizer state, gradients, parameters: over data (FSDP, 16)"),
        ("is 3 s per step plausible here?", "more than any published run"),
        ("could a step take 10 s at all?", "within what is expected"),
        ("could we keep tensor parallelism at 4 and still gain?", "With model=4 kept, the best of"),
        ("could we keep model=3?", "cannot run"),
        ("why do you want fewer pipeline stages in the first proposal?", "stage (pipeline stages) stays at 1"),
        ("what would a chip-hour budget of 5000 buy us in tokens?", "5,000 chip hours are 78.1 hours"),
        ("how many GPU hours per day does this burn?", "1,536 chip hours a day"),
        ("how much slower is full remat than minimal?", "another rematerialisation (now full)"),
        ("sweep tp over 1 2 4 8", "\n8 | "),
        ("p99 latency of a prompt?", "serves no requests"),
        ("which MaxText flags do I set for data=32 model=2?", "ici_tensor_parallelism=2"),
        ("which MaxText flags do I set for data=4 seq=4 model=4?", "as now: ici_tensor_parallelism=4"),
        ("is the 90% interval useful at all?", "90 % of cases"),
        ("what limits proposal 2?", ": Modelled, not measured: the step waits most for"),
    ],
)
def test_it_is_answered(start, say, text, said):
    assert said in say(text, start()).text


def test_a_word_of_the_question_before_is_not_taken_for_one_of_this(start, say):
    talk = start()
    say("what would remat minimal cost?", talk)
    answer = say("give me the MFU of all three", talk).text
    assert all(f"proposal {rank} (" in answer for rank in (1, 2, 3))
    assert "with remat" not in answer


def test_a_plan_that_was_named_in_part_stays_whole_in_the_next_question(start, say):
    talk = start()
    say("why not pp=2?", talk)
    assert "tokens take" in say("what would 100B tokens cost at 1.2 $ per chip hour?", talk).text


def test_proposals_that_are_level_are_called_level(start, say):
    answer = say("which one needs the least memory?", start()).text
    assert "has the lowest HBM use of the 3" in answer
