"""Plans that are looked for within limits, and what is no limit on HBM."""

import pytest

from asap.core.units import GIB
from tests.chat.conversations import ask

pytestmark = pytest.mark.slow


@pytest.mark.parametrize(
    "text",
    [
        "the job used at most 9 GiB",
        "we have no more than 400 GB of host memory",
        "does it fit in 9 GiB?",
        "between nodes there are only 4x HDR",
    ],
)
def test_what_is_no_limit_on_hbm_is_not_recorded_as_one(text, dense):
    assert not any(fact.about == "HBM" for fact in ask(dense, text).evidence)


def test_a_limit_on_hbm_rules_out_what_is_predicted_to_need_more(dense):
    ask(dense, "we can't go over 8 GiB")
    held = [one.prediction.memory.total.value for one in dense.conversation.proposals]
    assert held
    assert max(held) <= 8 * GIB


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("anything without offload?", "nothing is kept in host memory"),
        ("is there a plan that keeps tp>=4", "model is at least 4"),
        ("anything w/o touching remat", "the remat stays as it is"),
        ("best one under 9 GiB", "HBM is at most 9.00 GiB"),
        ("got something with tp at least 2 and no pipeline?", "model is at least 2; no stage axis"),
        ("any other ideas without changing the batch", "the batch stays as it is"),
    ],
)
def test_a_search_within_limits_lists_what_is_left_and_records_nothing(text, said, dense):
    answer = ask(dense, text)
    assert f"Asked for, not recorded: {said}" in answer.text
    assert not answer.evidence
    assert not answer.changed


def test_a_further_limit_comes_on_top(dense):
    ask(dense, "is there a plan that keeps tp>=2")
    assert "model is at least 2; no seq axis" in ask(dense, "and no cp").text
    assert "recorded: nothing is kept" in ask(dense, "anything without offload").text
