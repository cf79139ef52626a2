"""What is taken back, mended or left: limits, the last line, a plan that was not meant, a run that was supposed."""

import pytest

from asap.chat.chat import Chat
from asap.chat.restore import restore
from asap.evidence.claims import Claim
from asap.experiments import ExperimentStore
from tests.chat.conversations import analysed_session, ask

pytestmark = pytest.mark.slow


@pytest.mark.parametrize(
    ("limit", "lifted"),
    [
        ("HBM at most 9 GiB", "nvm, drop that limit"),
        ("HBM at most 9 GiB", "forget the memory limit"),
        ("keep tp>=4", "forget the tp thing"),
        ("we can't use cp", "cp is fine after all"),
        ("no offload please", "ok lift the offload restriction"),
        ("no grad accum please", "drop the accum rule"),
    ],
)
def test_a_limit_is_lifted_by_what_it_is_of(limit, lifted, dense):
    order = list(dense.conversation.order)
    assert ask(dense, limit).evidence
    answer = ask(dense, lifted)
    assert [fact.claim for fact in answer.retracted] == [Claim.CONSTRAINT]
    assert "lifted" in answer.text
    assert dense.conversation.order == order


def test_a_limit_that_is_not_on_record_lifts_no_other(dense):
    ask(dense, "keep tp>=4")
    assert not ask(dense, "drop the memory limit").retracted
    assert len(dense.conversation.evidence) == 1


def test_undo_takes_back_what_the_last_line_put_on_record_and_no_more(dense):
    ask(dense, "keep tp>=4", "no offload please")
    assert len(ask(dense, "undo that").retracted) == 1
    again = ask(dense, "undo")
    assert not again.retracted
    assert "nothing to go back from" in again.text
    assert len(dense.conversation.evidence) == 1


@pytest.mark.parametrize("text", ["back to normal", "undo", "ok drop that scenario", "back to our run", "reset"])
def test_a_run_that_was_supposed_is_left(text, dense):
    answer = ask(dense, "what if the batch is 512", text)
    assert "global batch 256, sequence 4096" in answer.text
    assert "512" not in ask(dense, "with cp 2?").text


@pytest.mark.parametrize("text", ["with cp2?", "and cp 2?", "cp 2 there", "using cp2"])
def test_a_plan_is_of_the_run_that_was_supposed(text, dense):
    answer = ask(dense, "what if the batch is 512", "seq 8k too", text)
    assert "With a global batch of 512 instead of 256 and a sequence length of 8192" in answer.text
    assert "seq=2" in answer.text


def test_an_answer_that_leaves_what_was_supposed_says_so(dense):
    assert "without what was supposed before" in ask(dense, "what if the batch is 512", "why not cp 2?").text


def test_a_question_is_asked_again_of_the_plan_that_was_meant(three):
    second = three.conversation.order[1]
    answer = ask(three, "how much hbm does proposal 1 need?", "no I meant the second")
    assert answer.topic == "memory"
    assert f"proposal 2 ({second})" in answer.text
    assert "proposal 3" in ask(three, "sorry, 3 not 2").text
    assert not three.conversation.evidence


def test_an_outcome_is_of_the_plan_that_was_meant_where_it_was_said_just_before(three):
    _, second, third = three.conversation.order
    ask(three, "proposal 2 ran out of memory")
    answer = ask(three, "sry 3 not 2")
    assert [fact.plan for fact in answer.retracted] == [second]
    assert [(fact.plan, fact.claim) for fact in answer.evidence] == [(third, Claim.OUT_OF_MEMORY)]


@pytest.mark.parametrize("text", ["no wait thats 11.2", "make that 11.2", "no, 11.2 s", "it should be 11.2"])
def test_a_figure_takes_the_place_of_the_one_stated_just_before(text, dense):
    ask(dense, "our step takes 11.9 s")
    ask(dense, text)
    assert [fact.value for fact in dense.conversation.evidence] == [11.2]


@pytest.mark.parametrize("text", ["no, batch is 16", "no more than tp 8"])
def test_a_figure_of_something_else_corrects_no_measurement(text, dense):
    ask(dense, "our step takes 11.9 s", text)
    assert 11.9 in [fact.value for fact in dense.conversation.evidence]


def test_what_the_last_line_stated_is_known_to_the_next_process(home):
    session, store = analysed_session(), ExperimentStore()
    ask(Chat(restore(session, store)), "keep tp>=1", "no offload please")
    again = Chat(restore(session, store))
    assert [str(fact) for fact in again.conversation.latest] == ["constraint: nothing is kept in host memory"]
    assert len(ask(again, "undo").retracted) == 1
    assert len(restore(session, store).evidence) == 1


@pytest.mark.parametrize("text", ["skip 1", "not 1 please", "anything but the first"])
def test_a_proposal_that_is_not_wanted_shows_the_others_and_records_nothing(text, three):
    first, second, _ = three.conversation.order
    answer = ask(three, text)
    assert not answer.evidence
    assert f"Without {first}:\n2. {second}" in answer.text


def test_more_proposals_are_the_list(dense):
    assert f"2. {dense.conversation.order[1]}" in ask(dense, "others?").text
