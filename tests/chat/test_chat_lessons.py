"""What measurements teach of other plans, and whose number a report means."""

import pytest

from asap.chat import Claim
from tests.chat.conversations import PAPERS

pytestmark = pytest.mark.slow


def _relative(talk) -> dict:
    candidates = talk.conversation.revised.ranked.candidates
    return {c.plan: c.prediction.relative_step_time.value for c in candidates}


def test_a_measured_plan_moves_those_near_it_and_hardly_those_far_away(start, say):
    talk = start()
    say("the baseline takes 10.8 s", talk)
    first = talk.conversation.proposals[0].plan
    before = _relative(talk)
    answer = say(f"{first} measured {10.8 * before[first] * 1.2:.3f} s", talk)
    after = _relative(talk)
    near = next(plan for plan in before if plan.ici == first.ici and plan != first)
    far = max(before, key=lambda plan: plan.degree("seq"))
    assert "moves plans near it" in answer.text
    assert after[first] == pytest.approx(before[first] * 1.2, rel=1e-3)
    assert 1.05 < after[near] / before[near] < 1.2
    assert abs(after[far] / before[far] - 1) < after[near] / before[near] - 1


def test_a_measurement_near_a_plan_narrows_its_interval(start, say):
    talk = start()
    say("the baseline takes 10.8 s", talk)
    first = talk.conversation.proposals[0].plan
    near = next(plan for plan in _relative(talk) if plan.ici == first.ici and plan != first)

    def width() -> float:
        figure = talk.conversation.candidate(near)[1].prediction.relative_step_time
        return figure.high / figure.low

    before = width()
    say(f"{first} measured {10.8 * _relative(talk)[first]:.3f} s", talk)
    assert width() < before


def test_without_the_architecture_a_measured_plan_says_nothing_of_others(chat, say):
    talk = chat(PAPERS[0])
    before = _relative(talk)
    measured = talk.conversation.proposals[1].plan
    say("proposal 2 was 12 % slower than the baseline", talk)
    after = _relative(talk)
    assert after[measured] == pytest.approx(1.12)
    assert {plan: after[plan] for plan in after if plan != measured} == {
        plan: before[plan] for plan in after if plan != measured
    }


def test_a_number_means_the_list_that_the_chat_began_with_until_its_result_is_known(start, say):
    talk = start("three")
    first, second, *_ = talk.conversation.opening
    changed = say("the baseline takes 10.4 s and proposal 1 takes 10.1 s", talk)
    assert changed.changed
    assert [fact.plan for fact in changed.evidence if fact.plan != talk.conversation.study.plan] == [first]
    (fact,) = say("I tested number 2 as well, 8.0 s", talk).evidence
    assert (fact.claim, fact.plan) == (Claim.STEP_TIME, second)
    now = talk.conversation.order[1]
    assert now != second
    (later,) = say("number 2 took 7.5 s", talk).evidence
    assert later.plan == now
