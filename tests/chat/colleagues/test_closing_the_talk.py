"""What is said once the proposals were read: choose one, combine two, leave a part out, be done, act on it."""

import re

import pytest


def test_two_proposals_at_once(three, say):
    one, two = three.conversation.order[:2]
    said = say("could 1 and 2 be merged?", three)
    assert said.topic == "compare"
    assert "proposal 1 changes" in said.text
    assert "proposal 2 changes" in said.text
    assert "Together: " in said.text or "as it stands" in said.text or "cannot run" in said.text
    assert str(said.focus) != str(three.conversation.study.plan)
    assert {one, two} <= set(three.conversation.order)


def test_what_only_one_of_both_changes_is_in_the_combination(three, say):
    """A setting that one of two changes alone is that of the combination."""
    from asap.chat.answers.proposals.combined import combination
    from asap.plans import Plan

    study = three.conversation.study
    now = study.plan
    mesh = now.model_copy(update={"ici": Plan.parse("data=16 model=4").ici})
    lighter = now.model_copy(update={"remat": Plan.parse("data=2 remat=minimal").remat})
    both, left_out = combination(study, now, mesh, lighter)
    assert (both.ici, both.remat, left_out) == (mesh.ici, lighter.remat, [])


@pytest.mark.parametrize("text", ["what about 1 and 9 together", "how do 1 and 2 scale together with more chips"])
def test_no_two_proposals_no_combination(three, say, text):
    assert "Together:" not in say(text, three).text


@pytest.mark.parametrize("text", ["am i done then?", "is that it?", "anything else to try?", "we're good to go?"])
def test_nothing_is_done_before_a_proposal_ran(dense, say, text):
    said = say(text, dense)
    assert "no result of a proposal is on record" in said.text
    assert said.focus == dense.conversation.order[0]
    assert not said.evidence


def test_after_a_measurement_what_is_left_is_said(dense, say):
    say("proposal 1 ran out of memory", dense)
    assert "no result of a proposal" not in say("so are we done now?", dense).text


@pytest.mark.parametrize(
    "text",
    [
        "can you raise a merge request for it",
        "please push that to our repo",
        "could you submit it to slurm",
        "file a jira",
    ],
)
def test_what_the_chat_cannot_do_comes_with_what_to_paste(dense, say, text):
    said = say(text, dense)
    assert said.text.startswith("That I cannot do")
    assert "ici_" in said.text


@pytest.mark.parametrize("text", ["how would i put that into my yaml", "can i push the batch further"])
def test_what_the_engineer_does_is_no_order(dense, say, text):
    assert "That I cannot do" not in say(text, dense).text


@pytest.mark.parametrize(
    "text", ["need a result before monday", "results are due by eod", "boss wants it by next week"]
)
def test_a_deadline_is_not_recorded(dense, say, text):
    said = say(text, dense)
    assert "I keep no dates" in said.text
    assert "A test of" in said.text
    assert not said.evidence


def test_a_deadline_beside_a_change_leaves_the_change(dense, say):
    assert say("we have 32 chips until monday", dense).topic != "test cost"


def test_which_one_after_a_changed_run_is_of_that_run(dense, say):
    say("what if the batch is 512", dense)
    said = say("ok so which one do i take", dense)
    assert "512" in said.text
    assert "Say what changes" not in said.text


def test_which_one_of_the_run_as_it_is(dense, say):
    assert say("so which one is it", dense).focus == dense.conversation.order[0]


def test_a_plan_without_an_axis_is_set_beside_it(three, say):
    plan = next(plan for plan in three.conversation.order if plan.degree("model") > 1 or plan.degree("seq") > 1)
    axis, word = ("model", "tp") if plan.degree("model") > 1 else ("seq", "cp")
    said = say(f"{three.conversation.order.index(plan) + 1} minus the {word}", three)
    assert said.focus.degree(axis) == 1
    assert str(said.focus) in said.text


def test_a_limit_on_chips(dense, say):
    assert "within that" in say("at most 128 chips", dense).text
    said = say("no more than 32 chips please", dense)
    assert "With 32 chips instead of 64" in said.text
    assert not said.evidence


def test_what_does_not_fit_is_nothing_to_keep(too_large, say):
    said = say("which should i start with", too_large)
    assert "Keep what you have" not in said.text
    assert "Keep what you have" not in say("is proposal 1 worth it", too_large).text


def test_what_runs_for_us_may_be_kept(too_large, say):
    said = say("it never ooms for us, 14 GB peak", too_large)
    assert [fact.plan for fact in said.evidence] == [too_large.conversation.study.plan]
    assert not re.search(r"does not fit, so it is nothing to keep", say("is proposal 1 worth it", too_large).text)
