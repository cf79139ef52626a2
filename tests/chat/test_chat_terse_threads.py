"""Threads in few words: a rate beside "sane?", results in a list, what is not liked, several figures in one breath."""

import pytest

from asap.evidence.claims import Claim
from tests.chat.conversations import ask

pytestmark = pytest.mark.slow
PAPER = "paper-v6e-16"


@pytest.mark.parametrize(
    ("text", "claim"),
    [
        ("we hit 340 TFLOP/s/gpu, sane?", Claim.MFU),
        ("mlflow has 340 TFLOPs per gpu, in line with your model?", Claim.MFU),
        ("dashboard shows 38% mfu, does that add up?", Claim.MFU),
        ("we're at 9.1k tok/s/gpu, legit?", Claim.THROUGHPUT),
        ("step 9.4 s, mfu?", Claim.STEP_TIME),
        ("step 9.4 s measured last night, tok/s/gpu?", Claim.STEP_TIME),
    ],
)
def test_a_figure_with_a_word_of_a_question_is_a_measurement_and_is_judged(text, claim, megatron):
    answer = ask(megatron, text)
    assert [(fact.claim, fact.plan) for fact in answer.evidence] == [(claim, megatron.conversation.study.plan)]
    assert "is expected of" in answer.text or "tokens/s/chip" in answer.text
    assert "do not understand" not in answer.text


def test_a_rate_far_from_the_prediction_is_not_called_expected(megatron):
    assert "is above what is expected of" in ask(megatron, "we log 31 TFLOP/s/gpu, plausible?").text


def test_a_share_of_an_unknown_architecture_is_judged_by_what_was_published(start):
    answer = ask(start(PAPER), "grafana says 51% mfu, believable?")
    assert [fact.claim for fact in answer.evidence] == [Claim.MFU]
    assert "An MFU of 51 % is possible" in answer.text


def test_what_somebody_else_reports_is_judged_for_the_plan_that_they_name(megatron):
    answer = ask(megatron, "a buddy gets 9k tok/s/gpu with tp1 selective. plausible?")
    assert not answer.evidence
    assert "what is expected of replica=16 microbatches=4 remat=selective" in answer.text


def test_a_figure_beside_a_measurement_is_of_what_was_measured_and_of_nothing_supposed(megatron):
    ask(megatron, "what if the network is 1x100Gb")
    assert "between nodes" not in ask(megatron, "step 9.4 s, mfu?").text


def test_results_in_a_list_are_each_of_its_proposal(start):
    chat = start(PAPER)
    first, second, third = chat.conversation.order
    answer = ask(chat, "saw 2.3 s on 2, 2.45 for 3, 1 crashed")
    assert {(fact.claim, fact.plan, fact.value) for fact in answer.evidence} == {
        (Claim.STEP_TIME, second, 2.3), (Claim.STEP_TIME, third, 2.45), (Claim.FAILED, first, None),
    }  # fmt: skip


@pytest.mark.parametrize("text", ["ugh that was on a different branch, scrap that", "wrong image, ignore pls"])
def test_a_reason_takes_back_what_was_just_recorded(text, start):
    chat = start(PAPER)
    ask(chat, "2 took 2.3 s")
    assert [fact.value for fact in ask(chat, text).retracted] == [2.3]
    assert not ask(chat, text).retracted, "nothing is on record any more"


def test_a_correction_of_one_digit_before_the_point_is_one(megatron):
    ask(megatron, "our step is 9.4 s")
    answer = ask(megatron, "sorry 9.9")
    assert ([fact.value for fact in answer.retracted], [fact.value for fact in answer.evidence]) == ([9.4], [9.9])


@pytest.mark.parametrize(
    ("text", "asked"),
    [
        ("rather 2 than 1, i dont like accum", "no gradient accumulation"),
        ("im wary of host offload. others?", "nothing is kept in host memory"),
        ("not a fan of recomputation tbh", "nothing is recomputed"),
        ("i dont trust offload. something without accum?", "no gradient accumulation"),
    ],
)
def test_what_is_not_liked_is_left_out_and_not_tried(text, asked, too_large):
    answer = ask(too_large, text)
    assert "Asked for, not recorded" in answer.text
    assert asked in answer.text
    assert "twice is an example" not in answer.text
    assert not answer.evidence


@pytest.mark.parametrize(
    "text", ["tp4 is from the 405b recipe. kill it?", "copied from the 8b job, hence tp4. drop it?"]
)
def test_where_a_setting_comes_from_changes_no_model(text, dense):
    answer = ask(dense, text)
    assert "instead of" not in answer.text
    assert "data 16→64, model 4→1" in answer.text


def test_what_a_setting_is_does_not_stand_for_what_is_asked(megatron):
    answer = ask(megatron, "mbs is 2. mbs4?")
    assert not answer.evidence
    assert answer.text.startswith("With microbatches=8,")


def test_nodes_in_which_something_lies_are_no_number_of_them(megatron):
    ask(megatron, "try 2, with tp across nodes")
    assert "chips instead of" not in ask(megatron, "so which one now").text


@pytest.mark.parametrize(("text", "degrees"), [("tp1?", "replica=16 "), ("tp1 + selective", "replica=16 ")])
def test_a_degree_of_one_is_read_without_a_sign(text, degrees, megatron):
    answer = ask(megatron, text)
    assert degrees in answer.text
    assert ("remat=selective" in answer.text) == ("selective" in text)


def test_several_figures_in_one_breath_are_answered_once_each(dense):
    for text in ("fits? step, mfu?", "hbm and tps?"):
        answer = ask(dense, text).text
        assert answer.count("HBM at its peak") == 1
        assert answer.count("tokens/s/chip") == 1


def test_a_figure_after_a_limit_is_of_what_is_left(three):
    ask(three, "which one now")
    ask(three, "cp is out")
    left = three.conversation.order[0]
    assert f"({left}) fits" in ask(three, "mem then?").text


@pytest.mark.parametrize("lines", [("what about tp=8?", "and step?"), ("what about tp=8?", "step time?")])
def test_a_lone_word_for_the_step_is_of_what_was_spoken_of(lines, dense):
    assert ask(dense, *lines).text.startswith("data=8 model=8")


def test_a_proposal_is_what_something_is_to_beat(three):
    third = three.conversation.order[2]
    answer = ask(three, "what about tp=8?", "tok/s of that, and does it beat 3?")
    assert "data=4 seq=2 model=8" in answer.text
    assert str(third) in answer.text
    assert "microbatches=3" not in answer.text


def test_memory_that_was_seen_is_read_without_its_name(dense):
    answer = ask(dense, "xprof says 13.1 of 16, what eats it")
    assert [(fact.claim, fact.stated) for fact in answer.evidence] == [(Claim.HBM_BYTES, 13.1)]
    assert "- optimizer:" in answer.text


def test_what_was_seen_to_run_is_not_said_not_to_fit(too_large):
    ask(too_large, "nvidia-smi shows 13 of 16")
    assert "ran with 13.0 GiB, as you stated, though the model says" in ask(too_large, "what fills the hbm?").text


def test_a_bare_figure_of_the_engine_is_explained(too_large):
    shown = too_large.conversation.analysed_study
    assert shown.plan is not None
    answer = ask(too_large, "what fills the hbm?").text
    figure = answer.partition(" fit: ")[2].split(" ")[0]
    assert "- activations:" in ask(too_large, f"your {figure} is nonsense").text


def test_shares_say_of_what_they_are(start):
    assert "of the highest rate that the chip allows" in ask(start(PAPER), "27% of what").text


def test_a_network_may_be_typed_without_its_unit(megatron):
    assert "a device between nodes" in ask(megatron, "ib is just 200g/node. changes?").text


def test_a_price_is_used_where_plans_are_ranked_by_cost(dense):
    assert "At $2.5 a chip-hour" in ask(dense, "$2.5/chip-hr, which one is cheapest per token").text


def test_what_there_is_is_a_reason_and_not_the_question(torchtitan):
    assert "The same mesh with another rematerialisation" in ask(torchtitan, "full AC really needed? got 80 gigs").text


def test_all_of_the_peak_is_a_step(dense):
    assert "At the peak of the chips the model's FLOPs" in ask(dense, "whats the 100% mfu number").text


def test_a_limit_is_put_right_in_the_line_that_takes_it_back(dense):
    ask(dense, "tp stays at 4")
    answer = ask(dense, "forget that, tp may go to 2 but not below")
    assert [str(fact) for fact in answer.retracted] == ["constraint: model=4 stays"]
    assert [str(fact) for fact in answer.evidence] == ["constraint: model is at least 2"]


@pytest.mark.parametrize("asked", ["you say?", "and yours?", "your take?"])
def test_the_own_figure_is_asked_for_beside_one_that_was_measured(asked, megatron):
    answer = ask(megatron, f"throughput is 355 TFLOP/s/gpu in mlflow. {asked}")
    assert [fact.claim for fact in answer.evidence] == [Claim.MFU]
    assert "what is expected of" in answer.text
    assert "I did not say" not in answer.text


@pytest.mark.parametrize(
    "text", ["8.9k tok/s/gpu is what nvidia reports for this, why are we behind", "the paper has 9k tok/s/gpu"]
)
def test_a_published_rate_is_not_ours(text, megatron):
    assert not ask(megatron, text).evidence


@pytest.mark.parametrize("lines", [("seq 16k?", "cp2 for that?"), ("seq 16k?", "and cp2?")])
def test_a_degree_for_that_is_of_the_run_that_was_supposed(lines, dense):
    assert ask(dense, *lines).text.startswith("With a sequence length of 16384")


@pytest.mark.parametrize("back", ["back to 4k. fits?", "ok back to normal, fits?"])
def test_back_to_what_runs_is_said_before_a_question(back, dense):
    ask(dense, "what if seq 32k")
    assert ask(dense, back).text.startswith(f"what runs now ({dense.conversation.study.plan}) fits")


@pytest.mark.parametrize(("times", "batch"), [("x2", 512), ("batch x4 with that", 1024)])
def test_a_factor_may_stand_before_its_number(times, batch, dense):
    ask(dense, "what if batch 300")
    assert f"a global batch of {batch} instead of 256" in ask(dense, "what if batch x2", times).text


def test_what_a_proposal_costs_in_time_is_said_against_now(three):
    assert ask(three, "2 costs me how many ms").text.startswith("Against what runs now")


def test_results_of_two_are_told_apart_in_their_order(start):
    chat = start(PAPER)
    first, second = chat.conversation.order[:2]
    answer = ask(chat, "2 beats 1: 2.31 vs 2.4 s")
    assert {(fact.plan, fact.value) for fact in answer.evidence} == {(second, 2.31), (first, 2.4)}


def test_results_without_a_unit_are_asked_about_and_then_taken(start):
    chat = start(PAPER)
    first, second = chat.conversation.order[:2]
    assert "What is 2.31: seconds a step" in ask(chat, "2.31 on 1, 2.4 on 2").text
    answer = ask(chat, "seconds")
    assert {(fact.plan, fact.value) for fact in answer.evidence} == {(first, 2.31), (second, 2.4)}


def test_a_result_is_taken_back_by_its_proposal(start):
    chat = start(PAPER)
    ask(chat, "1 took 2.3 s", "3 took 2.35 s", "which one first?")
    assert [fact.value for fact in ask(chat, "1 was the debug build, toss it").retracted] == [2.3]


def test_the_engines_own_figure_is_not_denied(megatron):
    shown = ask(megatron, "step time?").text
    seconds = shown.partition("step time ")[2].split(" ")[0]
    assert "I did not say" not in ask(megatron, f"you say {seconds}, really?").text
    answer = ask(megatron, f"9.4 s/it on mlflow, you say {seconds} - close enough?")
    assert [fact.value for fact in answer.evidence] == [9.4]
    assert "what is expected of" in answer.text


@pytest.mark.parametrize("text", ["tp must never leave nvlink, cp neither", "tp inside the node only, same for cp"])
def test_a_limit_may_hold_for_another_axis_too(text, megatron):
    said = [str(fact) for fact in ask(megatron, text).evidence]
    assert said == ["constraint: model stays inside a node", "constraint: seq stays inside a node"]


def test_a_proposal_without_a_technique_is_no_count_of_it(three):
    answer = ask(three, "2 minus the recompute")
    assert str(three.conversation.order[1]).partition(" remat=")[0] in answer.text
    assert "remat=none" in answer.text


def test_the_most_that_may_be_held_needs_no_unit_beside_tight(dense):
    answer = ask(dense, "too tight, max 12")
    assert [str(fact) for fact in answer.evidence] == ["constraint: HBM is at most 12.0 GiB a chip"]


def test_what_is_left_with_a_degree_keeps_it(three):
    assert "kept, the best of" in ask(three, "whats left w/ tp4").text


def test_a_target_is_remembered(dense):
    wanted = ask(dense, "need 2.4k tok/s/chip").text
    assert ask(dense, "what would close the gap").text == wanted


@pytest.mark.parametrize("text", ["someone on reddit claims 9k tok/s/gpu, bs?", "a blog says 9k tok/s/gpu, true?"])
def test_a_claim_of_somebody_is_judged(text, megatron):
    answer = ask(megatron, text)
    assert not answer.evidence
    assert "what is expected of" in answer.text


def test_how_much_a_proposal_brings_is_said_against_now(three):
    assert ask(three, "then how much would 2 bring in s").text.startswith("Against what runs now")


@pytest.mark.parametrize("text", ["seq 8k gbs 64, fits?", "8k seq 64 gbs, fits?", "gbs 64 seq 8k, fits?"])
def test_counts_side_by_side_are_each_of_their_name(text, dense):
    said = ask(dense, text).text
    assert said.startswith("With a global batch of 64 instead of 256 and a sequence length of 8192 instead of 4096")


def test_what_is_to_be_reached_is_no_sequence(dense):
    assert "a sequence length of" not in ask(dense, "would tp2 reach 2k?").text


def test_a_proposal_that_a_friend_ran_is_one_of_this_run(three):
    second = three.conversation.order[1]
    assert [(fact.plan, fact.value) for fact in ask(three, "my buddy ran 2: 9.1 s").evidence] == [(second, 9.1)]


def test_a_peak_is_of_the_chip_whoever_says_we(megatron):
    answer = ask(megatron, "we get 989 TFLOP/s peak on these, you use that?")
    assert "989 TFLOP/s is that figure" in answer.text
    assert not answer.evidence


def test_the_verdict_on_a_share_is_not_lost(dense):
    assert "of what runs now" in ask(dense, "is 33% mfu good?").text
