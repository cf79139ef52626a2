"""Turns of the impatient: denials, half sentences on what was just answered, units, flags, chips that do not exist."""

import re

import pytest

TENSOR = "llama-8b-tensor-16"
LARGE = "llama-8b-too-large"
PAPER = "paper-v6e-16"


@pytest.fixture
def llama(start):
    return start(TENSOR)


def _facts(chat):
    return [str(fact) for fact in chat.conversation.evidence]


@pytest.mark.parametrize(
    ("stated", "denied", "left"),
    [
        ("tp is impossible for us", "i never said no tp, only up to 4", ["constraint: model is at most 4"]),
        ("we can't use tensor", "i didn't say no tensor. just at most 2", ["constraint: model is at most 2"]),
        ("no offload please", "we never said no offload", []),
        ("proposal 1 crashed", "i didn't say it crashed", []),
        ("our batch is 512", "no i didn't say that", []),
        ("at least tp 2 please", "scratch that one", []),
    ],
)  # fmt: skip
def test_what_was_never_stated_is_taken_back_or_put_right(llama, say, stated, denied, left):
    say(stated, llama)
    say(denied, llama)
    assert _facts(llama) == left


def test_nobody_is_told_that_the_engine_did_not_say_what_the_engineer_denies(llama, say):
    assert "No, I did not say" not in say("i didn't say that", llama).text


@pytest.mark.parametrize(
    ("text", "topic"),
    [
        ("we don't buy that the run is compute bound", "bottleneck"),
        ("i can't see how 2 is slower", "compare"),
        ("i don't believe that it fits", "memory"),
    ],
)
def test_a_claim_that_is_not_believed_is_explained(llama, say, text, topic):
    said = say(text, llama)
    assert said.topic == topic
    assert not said.evidence


@pytest.mark.parametrize("text", ["I don't buy that proposal 1 is faster", "i cannot believe that 2 would be better"])
def test_doubt_of_a_proposal_is_answered_with_what_the_order_rests_on(llama, say, text):
    said = say(text, llama)
    assert "no new fact" in said.text
    assert not said.evidence


@pytest.mark.parametrize(
    ("text", "fact"),
    [
        ("10.4 s is nonsense, we measured 9.2", "what runs now"),
        ("you're way off on the hbm, we see 11 GiB", "HBM in use 11.0 GiB"),
        ("20.6% mfu is too low, it's 24", "MFU 24.0 %"),
    ],
)
def test_a_figure_that_is_called_wrong_is_corrected(llama, say, text, fact):
    said = say(text, llama).text
    assert "Recorded as evidence" in said
    assert fact in said


def test_a_figure_of_a_proposal_that_is_called_wrong_is_asked_about(llama, say):
    step = llama.conversation.proposals[0].prediction.step_time
    said = say(f"{step.value:.2f} s is wrong, it's 5.3", llama)
    assert not said.evidence
    assert "Did it run?" in said.text


@pytest.mark.parametrize("text", ["proposal 2 died after 10 min, oom", "2 crashed within 5 min"])
def test_how_long_a_run_lived_is_no_step(llama, say, text):
    assert not any("measured" in str(fact) for fact in say(text, llama).evidence)


def test_minutes_of_a_machine_are_no_step(llama, say):
    assert "measured" not in say("if we only get 45 min on it", llama).text


@pytest.mark.parametrize("text", ["our batch is 32 x 2048", "btw batch = 32 sequences of 2k tokens"])
def test_a_batch_with_its_sequences(start, say, text):
    facts = {str(fact) for fact in say(text, start(PAPER)).evidence}
    assert facts == {"global batch 32", "sequence length 2048"}


@pytest.mark.parametrize("text", ["is that any good?", "is this low", "are those ok"])
def test_figures_that_were_just_given_are_judged(llama, say, text):
    say("mfu of proposal 2?", llama)
    said = say(text, llama)
    assert said.topic == "plausible"
    assert "best published run" in said.text
    assert str(llama.conversation.order[0]) in said.text


def test_how_long_steps_take_in_any_unit(llama, say):
    step = llama.conversation.proposals[1].prediction.step_time.value
    assert f"{2000 * step / 3600:.2f} hours" in say("how long would 2000 steps take with 2", llama).text
    assert f"{2000 * step / 60:.0f} minutes" in say("in minutes?", llama).text
    assert "4,000 steps" in say("and 4k", llama).text


def test_a_lone_number_after_tokens_is_one_of_tokens(llama, say):
    say("days for 2T tokens", llama)
    assert "15,000,000,000,000 tokens" in say("and 15T?", llama).text


def test_the_cheapest_way_is_that_of_a_proposal(llama, say):
    said = say("fastest way through 300B tokens", llama).text
    assert str(llama.conversation.order[0]) in said
    assert len(re.findall(r"300,000,000,000 tokens take", said)) == 2


@pytest.mark.parametrize(
    ("before", "text", "unit"),
    [
        ("how much hbm does 1 take", "GB or GiB?", "2^30"),
        ("how much hbm does 1 take", "is that per chip", "on one chip"),
        ("tokens/s now?", "for one chip or all of them", "all chips together"),
        ("what do you propose", "in which unit?", "2^30"),
    ],
)
def test_units_are_told(llama, say, before, text, unit):
    say(before, llama)
    said = say(text, llama).text
    assert unit in said
    assert str(llama.conversation.order[0]) not in said


@pytest.mark.parametrize(
    ("text", "known"),
    [
        ("xla_tpu_scoped_vmem_limit_kib=81920 any use?", "VMEM"),
        ("do we want --xla_tpu_enable_async_collective_fusion=true", "matmul"),
        ("--xla_tpu_unheard_of=64 maybe?", "I know nothing of it"),
    ],
)
def test_a_flag_that_is_named_is_judged_and_its_value_is_no_count(llama, say, text, known):
    said = say(text, llama)
    assert said.topic == "xla flags"
    assert known in said.text


@pytest.mark.parametrize("text", ["keep the batch the same", "same global batch though", "with the same batch"])
def test_what_is_to_stay_is_kept_in_what_was_asked(llama, say, text):
    say("what if batch per chip stays the same with 512 chips", llama)
    said = say(text, llama).text
    assert said.startswith("With 512 chips in 2 slices instead of 256:")
    assert "Kept as on record: batch" in said


@pytest.mark.parametrize("text", ["2 slices with 128 chips each", "2 pods of 128", "what if 256 chips in 2 slices"])
def test_slices_with_their_chips(llama, say, text):
    assert "With 256 chips in 2 slices instead of 256:" in say(text, llama).text


@pytest.mark.parametrize(
    ("text", "change"),
    [
        ("halve the per-chip batch", "a global batch of 128"),
        ("twice the batch per gpu", "a global batch of 512"),
        ("does this scale to 512", "512 chips"),
        ("my boss wants us to triple the batch", "a global batch of 768"),
        ("hey quick one, does 2 fit on v5p", "256 v5p chips"),
    ],
)
def test_what_changes(llama, say, text, change):
    assert change in say(text, llama).text


def test_advice_of_others_changes_nothing(llama, say):
    assert "With 512 chips" not in say("every consultant tells me to buy more chips", llama).text


@pytest.mark.parametrize(
    ("text", "limit"),
    [
        ("anything except offload?", "nothing is kept in host memory"),
        ("is there no way around offloading", "nothing is kept in host memory"),
        ("isn't there a way without microbatching", "no gradient accumulation"),
        ("everything but cp", "no seq axis"),
    ],
)
def test_plans_without_something_are_looked_for(llama, say, text, limit):
    assert f"Asked for, not recorded: {limit}" in say(text, llama).text


@pytest.mark.parametrize(
    ("text", "fact"),
    [
        ("nothing with offload please", "constraint: nothing is kept in host memory"),
        ("pls keep remat full", "constraint: the remat stays as it is"),
    ],
)
def test_a_request_to_keep_or_spare_is_a_limit(llama, say, text, fact):
    say(text, llama)
    assert _facts(llama) == [fact]


@pytest.mark.parametrize("text", ["is it because of the all gather", "is the all-reduce the reason"])
def test_what_is_blamed_is_beside_what_holds_the_run_back(start, say, text):
    said = say(text, start(PAPER)).text
    assert "Communication takes 7.5 % of the time by the KPIs." in said
    assert "HBM bandwidth" in said


def test_two_questions_of_which_one_is_why_a_plan_is_behind(llama, say):
    said = say("whats the hbm of 1 and why is 2 slower", llama).text
    assert all(str(plan) in said for plan in llama.conversation.order[:2])


def test_a_remark_before_a_question_is_no_part_of_it(llama, say):
    assert say("been staring at this all week, what's the bottleneck", llama).topic == "bottleneck"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("what if ici were twice as fast", "times as fast"),
        ("suppose hbm bandwidth doubled", "HBM traffic adds"),
        ("imagine each chip had 24GB", "of HBM that a job can use"),
    ],
)
def test_a_chip_that_does_not_exist_is_bounded(llama, say, text, said):
    answer = say(text, llama)
    assert said in answer.text
    assert not answer.evidence


def test_more_memory_of_a_chip_says_what_fits(start, say):
    said = say("what if chips had 4x the hbm", start(LARGE)).text
    assert "what runs now" in said
    assert "does not fit" not in said


@pytest.mark.parametrize("text", ["does qlora change the picture", "should i freeze the embeddings", "dropout?"])
def test_what_nothing_here_can_vary_is_said_to_be_so(llama, say, text):
    assert "that is no lever and no axis here" in say(text, llama).text


@pytest.mark.parametrize("text", ["is remat even worth it", "turn off remat"])
def test_words_within_other_words_are_no_technique(llama, say, text):
    assert "that is no lever" not in say(text, llama).text


@pytest.mark.parametrize("text", ["how sure on a scale of 1 to 10", "p50 or p90?"])
def test_how_sure(llama, say, text):
    assert "90 % of cases" in say(text, llama).text


def test_the_line_of_a_proposal_and_not_of_what_runs(llama, say):
    assert "ici_fsdp_parallelism=256" in say("what changes in my config with 1", llama).text


def test_a_step_of_a_log_beside_its_loss(llama, say):
    said = say("step 100: loss 3.21 step_time 9.93 s", llama)
    assert [fact.value for fact in said.evidence] == [9.93]


@pytest.mark.parametrize("text", ["1 or keep what we run?", "proposal 1 or stay as we are, is it worth it"])
def test_a_proposal_is_weighed_and_not_what_runs(start, say, text):
    said = say(text, start(PAPER)).text
    assert "P(faster) 65 %" in said


@pytest.mark.parametrize("text", ["would it fit on 512", "does it run on 512?"])
def test_a_lone_number_that_it_runs_on_is_one_of_chips(llama, say, text):
    assert "With 512 chips in 2 slices instead of 256" in say(text, llama).text


def test_a_degree_is_no_proposal(llama, say):
    assert "There is no proposal" not in say("why 8 way everything", llama).text
