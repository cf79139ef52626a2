"""Kinds of questions from threads on performance: what counts, what words mean, what is not predicted, other models."""

import pytest

from asap.evidence.claims import Claim
from tests.chat.conversations import ask

pytestmark = pytest.mark.slow


@pytest.mark.parametrize(
    "text",
    ["is attention counted with the causal mask?", "how do you compute mfu", "6ND or full attention in your flops?"],
)
def test_how_flops_are_counted_is_said_with_figures_of_the_run(text, megatron):
    said = ask(megatron, text).text
    assert "half that a causal mask leaves" in said
    assert "of the FLOPs of this run" in said
    assert "989 TFLOP/s" in said


def test_why_another_tool_has_another_figure(megatron):
    said = ask(megatron, "the trainer prints 300 TFLOP/s per gpu, why is that not the same as your mfu?").text
    assert "A tool that counts attention in full" in said
    assert "tokens/s" in said


def test_why_mfu_is_below_a_published_one(megatron):
    said = ask(megatron, "a paper reaches 55% mfu on this chip, how come ours is lower").text
    assert "The MFU of" in said
    assert "may count FLOPs otherwise" in said


@pytest.mark.parametrize(
    ("text", "means"),
    [
        ("what's a reduce-scatter", "leaves each a piece"), ("wdym by weak scaling", "batch grow with the chips"),
        ("what does straggler mean", "slower than the others"), ("what is context parallelism again?", "axis seq"),
        ("difference between mfu and hfu?", "HFU counts all FLOPs that ran"),
    ],
)  # fmt: skip
def test_words_of_the_trade_are_explained(text, means, dense):
    answer = ask(dense, text)
    assert answer.topic == "term"
    assert means in answer.text


def test_what_is_the_figure_is_no_question_on_the_word(dense):
    assert ask(dense, "what is our mfu").topic == "throughput"
    assert ask(dense, "what is the difference between 1 and 2").topic == "compare"


def test_how_large_it_is_here_goes_on_with_the_word(megatron):
    ask(megatron, "what does pipeline bubble mean")
    assert "pipeline bubble of what runs now" in ask(megatron, "and how large is ours?").text


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("could a slow node be it", "A slow device or host"), ("perhaps it's tokenization", "The input pipeline"),
        ("do checkpoint writes matter", "Checkpoints and evaluation"), ("might be clock throttling", "A lower clock"),
        ("how would i spot a straggler", "A slow device or host"),
    ],
)  # fmt: skip
def test_what_no_prediction_counts_is_named_with_its_sign(text, said, dense):
    text = ask(dense, text).text
    assert said in text
    assert "What would show it" in text


def test_a_measured_step_says_how_much_room_there_is_for_it(dense):
    assert "beyond the modelled" in ask(dense, "step is 14.2 s", "maybe the data loader?").text


def test_what_is_not_near_enough_is_asked_back_and_may_be_picked(dense):
    offered = ask(dense, "would that be any nicer for the odds of the plan")
    assert offered.topic == "unknown"
    assert offered.context is not None
    assert offered.context.offered
    first = ask(dense, offered.context.offered[0])
    ask(dense, "would that be any nicer for the odds of the plan")
    assert ask(dense, "the first one").topic == first.topic


def test_another_model_is_evaluated_and_keeps_the_chips_of_before(dense):
    assert "llama2-70b instead of" in ask(dense, "what if we train llama2-70b").text
    said = ask(dense, "on 256 chips?").text
    assert "llama2-70b instead of" in said
    assert "256 chips instead of 64" in said


def test_a_size_that_is_of_no_known_model_is_asked_about(dense):
    assert "which model 44b is, is not known here" in ask(dense, "and for a 44b model?").text


def test_the_size_of_the_run_s_own_model_changes_nothing(dense):
    assert ask(dense, "why is the 7b so slow").topic == "bottleneck"


def test_where_no_proposal_fits_what_fits_is_shown(start):
    said = ask(start(), "what if we train llama2-70b on 256 v5e").text
    assert "What fits, best first" in said or "(fits)" in said


@pytest.mark.parametrize("stage", ["zero-2", "ZeRO stage 2", "zero2"])
def test_zero_2_keeps_parameters_whole(stage, dense):
    said = ask(dense, f"would {stage} be faster here?").text
    assert "keeps parameters whole" in said
    assert "replica=16 model=4" in said


def test_several_numbered_questions_are_answered_one_by_one(dense):
    said = ask(dense, "1) what's the mfu 2) why not tp 8 3) which flags for 2").text
    assert "MFU" in said
    assert "model=8" in said
    assert "as MaxText overrides" in said


def test_either_of_two_things_is_evaluated(dense):
    said = ask(dense, "4 microbatches or a batch of 512, what is better?").text
    assert "With microbatches=4" in said
    assert "With a global batch of 512" in said


def test_a_word_that_was_meant_takes_the_place_of_another(dense):
    ask(dense, "cp can't go above 2")
    answer = ask(dense, "sorry, i meant ep")
    assert [fact.about for fact in answer.evidence] == ["expert"]
    assert [fact.about for fact in answer.retracted] == ["seq"]
    assert all(fact.claim is Claim.CONSTRAINT for fact in answer.evidence)


def test_a_count_that_was_meant_is_asked_of_again(dense):
    ask(dense, "what if we had 128 chips")
    assert "256 chips instead of 64" in ask(dense, "oops, sorry, 256").text


def test_why_there_is_none_of_an_axis_shows_what_it_would_bring(dense):
    assert "stage=" in ask(dense, "how come there is no pipeline").text


def test_the_loss_is_spoken_of_where_plans_or_a_batch_are(dense):
    assert "same curve but for rounding" in ask(dense, "do your proposals affect the loss?").text
    assert "is another training" in ask(dense, "what if the batch is 512, and does lr need a change").text


@pytest.mark.parametrize(
    "text",
    [
        "two weeks ago this ran 12 % quicker, what happened?", "it used to take 9.8 s with the same settings",
        "bumping the driver made it slower", "we dropped from 10.1 s since the new container",
    ],
)  # fmt: skip
def test_a_run_at_another_time_is_no_fact_of_now(text, dense):
    answer = ask(dense, text)
    assert not answer.evidence
    assert "nothing of another time" in answer.text


def test_a_plan_that_ran_yesterday_is_a_fact(dense):
    assert ask(dense, "proposal 1 ran yesterday, 9.9 s").evidence


@pytest.mark.parametrize("text", ["rebooting the hosts fixed it", "after reseating a card it's fine now"])
def test_a_repair_is_nothing_of_the_plan(text, dense):
    answer = ask(dense, text)
    assert not answer.evidence
    assert "beside the plan was at fault" in answer.text


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("we're on 4 slices btw", "--slices 4"), ("our cluster is v5e-128", "--hardware v5e-128"),
        ("this run has 128 chips", "what if 128 chips"),
    ],
)  # fmt: skip
def test_chips_that_are_stated_are_not_supposed(text, said, dense):
    answer = ask(dense, text)
    assert "Not recorded: the analysis is of 64 chips" in answer.text
    assert said in answer.text


@pytest.mark.parametrize("text", ["which file is that in?", "where do i put those?", "does it go into the yaml"])
def test_where_settings_are_written_is_said(text, dense):
    said = ask(dense, text).text
    assert "ici_fsdp_parallelism" in said
    assert "YAML file" in said


def test_what_a_factor_is_to_lead_to_is_no_change(dense):
    assert "128 chips instead of 64" in ask(dense, "would twice the chips halve the step time?").text


def test_after_a_limit_it_is_the_plan_that_keeps_it(dense):
    ask(dense, "no more than tp 4")
    assert ask(dense, "and its memory?").text.startswith("proposal 1")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("is flash attention assumed?", "Attention kernel"), ("are the experts balanced in your model", "equal share"),
        ("do you assume communication overlaps", "counts as exposed"), ("is it gpipe or 1f1b you assume", "1F1B"),
    ],
)  # fmt: skip
def test_what_is_taken_for_granted_is_said(text, said, dense):
    assert said in ask(dense, text).text


def test_the_step_is_split_into_forward_and_backward(megatron):
    said = ask(megatron, "how much of it is bwd vs fwd").text
    assert "forward" in said
    assert "computed again in the backward pass" in said


def test_a_question_may_begin_with_a_preposition(dense):
    answer = ask(dense, "at which batch does it oom")
    assert not answer.evidence
    assert "largest global batch" in answer.text


def test_a_number_of_a_device_is_no_proposal(dense):
    assert "A slow device or host" in ask(dense, "gpu 11 lags behind").text


@pytest.mark.parametrize(("text", "about"), [("but no changes to remat", "remat"), ("without batch changes", "batch")])
def test_no_changes_of_a_thing_keep_it_as_it_is(text, about, dense):
    assert [(fact.claim, fact.about) for fact in ask(dense, text).evidence] == [(Claim.CONSTRAINT, about)]


def test_what_is_hardly_of_a_topic_and_in_other_words_is_asked_back(dense):
    answer = ask(dense, "is there some magic bullet here")
    assert answer.topic == "unknown"
    assert "Do you mean" in answer.text


def test_experts_of_a_dense_model_take_how_many_a_token_goes_to(dense):
    assert "experts per token" in ask(dense, "what if it had 16 experts").text
    assert "16 experts instead of 0" in ask(dense, "what if it had 16 experts, top 2").text
