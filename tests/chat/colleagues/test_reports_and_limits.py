"""Reports that begin with a digit, outcomes of a setting, what is added to a limit, what is not wanted any more."""

import pytest

from asap.evidence.claims import Claim


@pytest.mark.parametrize(
    "text", ["2 clocked in at 7.2 s a step", "btw 2 comes out at 7.2 s per step", "2 lands at 7.2 s"]
)
def test_a_report_whose_subject_is_a_digit(dense, say, text):
    second = dense.conversation.order[1]
    assert [fact.plan for fact in say(text, dense).evidence] == [second]


def test_a_digit_that_may_be_a_proposal_is_asked_about(dense, say):
    said = say("2 stabilised around 7.2 s per step", dense)
    assert not said.evidence
    assert 'Is "2" the number of a proposal?' in said.text


def test_the_outcome_of_a_setting_is_of_what_runs_with_it(dense, say):
    (fact,) = say("remat minimal hit an OOM", dense).evidence
    assert (fact.claim, str(fact.plan.remat)) == (Claim.OUT_OF_MEMORY, "minimal")


def test_what_a_chip_holds_is_recorded(dense, say):
    (fact,) = say("9 GiB in use on each chip", dense).evidence
    assert fact.claim is Claim.HBM_BYTES
    assert not say("40 GiB used by the host", dense).evidence


def test_a_few_words_add_to_a_limit(dense, say):
    say("do not touch the batch", dense)
    (fact,) = say("also no pp", dense).evidence
    assert (fact.claim, fact.about) == (Claim.CONSTRAINT, "stage")


def test_the_same_words_without_a_limit_before_them_ask(dense, say):
    assert not say("and no tp", dense).evidence


def test_what_is_left_after_limits(dense, say):
    say("we cannot use offloading", dense)
    said = say("what's left then?", dense)
    assert said.topic == "proposals"
    assert "offload=" not in said.text


def test_a_precision_that_is_not_wanted_any_more(megatron, say):
    say("what about fp8", megatron)
    said = say("no fp8 then. seq 16k?", megatron).text
    assert "sequence length of 16384" in said
    assert "precision" not in said


def test_narrow_moments_are_no_narrow_products(dense, say):
    assert "With precision int8" not in say("would int8 adam help", dense).text


def test_the_precision_of_a_sum_is_not_that_of_products(dense, say):
    said = say("do you account for fp32 reduce", dense).text
    assert "Matrix products" not in said
    assert "gradients are summed" in said


def test_the_line_of_a_number_with_a_word_behind_it(three, say):
    assert say("line for 2 then", three).focus == three.conversation.order[1]


def test_a_summary_by_its_usual_name(dense, say):
    assert say("whats the tldr", dense).topic == "summary"


@pytest.mark.parametrize("text", ["we won't go above 80% of hbm", "please leave 20% headroom"])
def test_a_share_of_the_memory_is_a_limit_in_bytes(dense, say, text):
    chip = dense.conversation.study.slice.chip
    (fact,) = say(text, dense).evidence
    assert fact.claim is Claim.CONSTRAINT
    assert fact.value == pytest.approx(0.8 * chip.hbm_bytes, rel=0.01)


def test_a_share_that_is_asked_about_is_no_limit(dense, say):
    assert not say("does 1 leave 20% free?", dense).evidence


def test_what_runs_and_a_proposal_in_one_breath(dense, say):
    now, first = dense.conversation.study.plan, dense.conversation.order[0]
    found = say("9.1s now, 6.9 w 1", dense).evidence
    assert [(fact.plan, fact.value) for fact in found] == [(now, 9.1), (first, 6.9)]


def test_two_figures_of_which_one_has_no_unit_are_asked_apart(dense, say):
    said = say("proposal 1 took 6.9 s, 9.1 before", dense)
    assert not said.evidence
    assert "One measurement per sentence" in said.text


def test_a_loss_beside_a_step_is_no_second_figure(dense, say):
    (fact,) = say("1 took 6.9 s, loss 2.31", dense).evidence
    assert fact.value == 6.9


def test_the_second_half_of_a_question_states_nothing(dense, say):
    said = say("can we get less memory but stay faster", dense)
    assert "Which plan?" not in said.text
    assert not said.evidence


def test_a_value_that_only_seems_wrong_is_no_fact_either(dense, say):
    assert "global batch of 128 instead of 256" in say("batch 256 seems high, try 128", dense).text


def test_a_proposal_that_diverged(dense, say):
    first = dense.conversation.order[0]
    assert [(fact.claim, fact.plan) for fact in say("1 nan'd after a while", dense).evidence] == [(Claim.FAILED, first)]


def test_a_proposal_with_another_setting(dense, say):
    first = dense.conversation.order[0]
    said = say("could we do 1 with remat full", dense)
    assert said.topic == "what if"
    assert said.focus.ici == first.ici
