"""Lines as they are typed in a hurry: a typo put right, a guess, what was supposed before, a plan in pieces."""

import pytest

from asap.evidence.claims import Claim
from tests.chat.conversations import ask

pytestmark = pytest.mark.slow


@pytest.mark.parametrize(
    ("text", "claim", "value"),
    [
        ("256 is a typo, its 128", Claim.BATCH, 128),
        ("batch is wrong, 128", Claim.BATCH, 128),
        ("its 2048 not 4096", Claim.SEQUENCE, 2048),
        ("seq is a typo its 2k", Claim.SEQUENCE, 2048),
    ],
)
def test_a_figure_of_the_record_is_put_right(text, claim, value, dense):
    assert [(fact.claim, fact.value) for fact in ask(dense, text).evidence] == [(claim, value)]


@pytest.mark.parametrize(
    ("text", "begins"),
    [
        ("i'd bet on 3.6", "3.60 s is below what is predicted for proposal 1"),
        ("my guess is 9 sec for 2", "9.00 s is inside what is predicted for proposal 2"),
        ("tp 3 sounds off, 1.71 vs 1.58 and slower", "Which plan took 1.71 and which 1.58"),
    ],
)
def test_a_guess_and_a_riddle_are_not_recorded(text, begins, three):
    answer = ask(three, text)
    assert answer.text.startswith(begins)
    assert not answer.evidence


@pytest.mark.parametrize("text", ["cost per 1T tokens at $1.2 per chip hour?", "mfu?"])
def test_a_figure_is_of_what_was_just_supposed(text, dense):
    assert "with 32 chips instead of 64" in ask(dense, "what if 32 chips", text).text.splitlines()[0]


def test_before_and_after_are_what_runs_and_what_is_proposed(dense):
    text = ask(dense, "cost per 1T tokens at $1.2 per chip hour, before vs after").text
    assert [line.partition(" (")[0] for line in text.splitlines()[::2]] == ["what runs now", "proposal 1"]
    assert text.count("at $1.2 a chip hour") == 2


def test_money_without_a_price_asks_for_it(dense):
    assert 'say it, as in "at $2 a chip hour"' in ask(dense, "what would 300B tokens cost in $").text


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("smallest change to fit w/o accum", "(no gradient accumulation)"),
        ("fits without host offload?", "One setting is enough (nothing is kept in host memory)"),
        ("how many gpus to fit 2048", "A plan fits on"),
        ("fits now?", "does not fit: "),
        ("chunked loss alone enough?", "With loss_chunks=2"),
        ("batch 256 and done?", "With a global batch of 256 instead of 2048 it fits:"),
    ],
)
def test_what_fits_within_a_limit(text, said, too_large):
    assert said in ask(too_large, text).text


@pytest.mark.parametrize(
    ("text", "begins"),
    [
        ("so whats the fix", "Start with proposal 1"),
        ("still 1st?", "Yes, the order is the one that we began with"),
        ("same loss?", "No: the proposals train the same batch"),
        ("are remat and so on in your numbers, is remat on?", "Recomputation (activation checkpointing): full"),
        ("2 is slower right", "No. Against what runs now"),
        ("why is the host time 40%", "host time of what runs now"),
        ("32.5s/step, sanity check pls", "Recorded as evidence"),
        ("what does 2 give in sec", "proposal 2 ("),
        ("tensor 4 is dumb right", "data=8 seq=2 model=4 remat=full is the current plan"),
        ("host offload killed us last time so no", "Asked for, not recorded: nothing is kept in host memory"),
        ("both?", "I "),
    ],
)
def test_a_few_words_are_answered_first(text, begins, three):
    assert ask(three, text).text.startswith(begins)


def test_layers_of_a_stage_are_not_those_of_the_model(three):
    assert "layers instead of" not in ask(three, "is pp2 legal with 16 layers/stage").text


def test_a_plan_in_pieces_is_one(three):
    (fact,) = ask(three, "fsdp16 ran 9.2s, tp4, full remat").evidence
    assert fact.plan is not None
    assert (fact.plan.degree("data"), fact.plan.degree("model"), fact.value) == (16, 4, 9.2)


def test_a_step_that_fell_under_a_proposal_is_two_facts(three):
    first = three.conversation.order[0]
    facts = ask(three, "step went 12.1 -> 9.8 with 1").evidence
    assert [(fact.plan, fact.value) for fact in facts] == [(three.conversation.study.plan, 12.1), (first, 9.8)]
    assert ask(three, "redo it with that").text.startswith("Done already")


@pytest.mark.parametrize("text", ["compare 1 and 2", "explain 2", "which first?"])
def test_a_short_question_has_a_short_answer(text, three):
    assert len(ask(three, text).text.splitlines()) <= 7
    assert "§" in ask(three, "explain 2 in detail").text


def test_what_comes_on_top_of_a_plan_keeps_its_microbatches(dense):
    plan = ask(dense, "what about tp=2 microbatches=4?", "and with cp2?").focus
    assert plan is not None
    assert (plan.degree("model"), plan.degree("seq"), plan.microbatches) == (2, 2, 4)


def test_both_are_all_that_was_supposed(dense):
    text = ask(dense, "what if batch 512", "and fp8", "both?").text
    assert text.startswith("With a global batch of 512 instead of 256 and precision fp8 instead of bf16:")


def test_the_communication_then_is_of_the_plan_spoken_of(dense):
    text = ask(dense, "what about tp=8?", "whats the comm then, in ms").text
    assert text.startswith("Predicted collectives of data=8 model=8")


def test_the_optimizer_is_offloaded_and_not_the_activations(dense):
    assert ask(dense, "offload optim to cpu then?").text.startswith("With offload=optimizer")


def test_what_is_not_in_the_version_is_ruled_out(megatron):
    (fact,) = ask(megatron, "we dont have tp in our version").evidence
    assert str(fact) == "constraint: no model axis"


def test_a_settings_line_says_that_what_was_supposed_is_not_in_it(dense):
    assert "without what was supposed before" in ask(dense, "what if batch 512", "what do i paste").text


def test_an_axis_takes_the_place_of_another(dense):
    plan = ask(dense, "pp2 instead of tp4?").focus
    assert plan is not None
    assert (plan.degree("stage"), plan.degree("model")) == (2, 1)


def test_a_setting_after_a_report_is_of_the_plan_that_was_reported(three):
    third = three.conversation.order[2]
    ask(three, "3 died w oom")
    plan = ask(three, "and with full remat?").focus
    assert plan is not None
    assert plan.ici == third.ici


def test_what_was_said_not_to_fit_is_not_denied(too_large):
    assert "does not fit" in ask(too_large, "it cant run now u said").text


def test_that_is_the_plan_that_was_just_measured(three):
    second = three.conversation.order[1]
    assert ask(three, "ran 2, 9.3s", "so whats that in mfu").focus == second


@pytest.mark.parametrize(("asked", "axis"), [("more fsdp", "data"), ("less tensor parallelism", "model")])
def test_reasons_of_the_axis_that_is_named_come_first(asked, axis, three):
    text = ask(three, f"why do you want {asked}? explain the first proposal").text
    said = [line for line in text.splitlines() if line.startswith(("+ ", "- "))]
    assert said[0].startswith(f"+ {axis} ")
