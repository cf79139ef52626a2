"""Lines that were taken for something else: a digit that is a proposal, a value that is found wrong, what is in use."""

import pytest

from asap.chat.understanding.topics.topics import Topic
from asap.chat.understanding.words.vocabulary.spelling import well_spelt
from asap.plans import Plan


def of_proposal(chat, number: int) -> str:
    return str(chat.conversation.order[number - 1])


def test_a_digit_before_its_verb_is_a_proposal(three, say):
    assert of_proposal(three, 2) in say("2 has the bigger footprint, how come", three).text


def test_the_odds_of_fitting_are_those_of_the_proposal_that_is_named(torchtitan, say):
    held = torchtitan.conversation.proposals[1].prediction.memory
    said = say(f"2 has {held.probability_fits * 100:.0f}% to fit, says who", torchtitan)
    assert said.topic == "memory"
    assert said.focus == torchtitan.conversation.order[1]


def test_a_share_of_the_host_is_explained(megatron, say):
    said = say("11% host, what on earth is that", megatron).text
    assert "host time of what runs now" in said
    assert "the host starts the kernels" in said


@pytest.mark.parametrize(
    ("text", "then"),
    [
        ("gbs 256 is way too little, make it 512", "global batch of 512 instead of 256"),
        ("seq 4096 is too short for us, bump it to 8k", "sequence length of 8192 instead of 4096"),
    ],
)
def test_a_value_that_is_found_wrong_is_no_fact(dense, say, text, then):
    said = say(text, dense)
    assert then in said.text
    assert not said.evidence


def test_what_is_asked_next_is_of_that_value(dense, say):
    say("batch 256 is too small, push it to 512", dense)
    said = say("tps then?", dense)
    assert said.topic == "throughput"
    assert "tensor parallel" not in said.text


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("is 4.1 s with or without the compile step", "no compilation"),
        ("does your step time include the optimizer step", "optimizer's update"),
        ("is torch.compile on or off in these figures", "torch.compile:"),
    ],
)
def test_what_a_figure_includes(dense, say, text, told):
    assert told in say(text, dense).text


@pytest.mark.parametrize("text", ["we already run with cuda graphs", "torch.compile is on by default here"])
def test_what_is_in_use_is_offered_for_no_test(megatron, say, text):
    said = say(text, megatron)
    assert "is part of what runs now" in said.text
    assert "To test it" not in said.text


def test_what_is_asked_to_be_in_use_is_no_statement(megatron, say):
    assert "is part of what runs now" not in say("are cuda graphs on already?", megatron).text


def test_the_recipe_follows_another_batch_alone(dense, say):
    say("what if remat=minimal", dense)
    assert say("must we adjust the learning rate for it", dense).text.startswith("No: ")
    assert "It may: " in say("with twice the batch should i raise the lr", dense).text


def test_a_named_plan_that_died_is_recorded_where_nothing_fits(too_large, say):
    first, second = too_large.conversation.order[:2]
    assert [fact.plan for fact in say("launched 1, RESOURCE_EXHAUSTED", too_large).evidence] == [first]
    said = say("uh sorry, that was 2", too_large)
    assert [fact.plan for fact in said.retracted] == [first]
    assert [fact.plan for fact in said.evidence] == [second]


def test_an_unnamed_plan_that_died_is_asked_for(too_large, say):
    assert not say("it ran out of memory", too_large).evidence


def test_selective_is_what_the_launcher_calls_so(torchtitan, say):
    said = say("and activation_checkpoint.mode selective?", torchtitan)
    assert "remat=full.1/2" in said.text
    assert "remat=selective" not in said.text
    assert "remat=minimal" in say("selective ac of single ops then?", torchtitan).text


def test_selective_stays_megatrons_in_megatron(megatron, say):
    assert "remat=selective" in say("what if we use selective recompute", megatron).text


def test_the_runs_own_launcher_is_a_launcher(torchtitan, say):
    said = say("and for torchtitan?", torchtitan)
    assert said.topic == "maxtext"
    assert "torchtitan settings" in said.text


def test_what_another_launcher_refuses_is_in_its_own_name(torchtitan, say):
    torchtitan.conversation.focus = torchtitan.conversation.study.plan.model_copy(
        update={"remat": Plan.parse("data=2 remat=minimal").remat}
    )
    said = say("and for nemo?", torchtitan).text
    assert "NeMo has no recomputation" in said
    assert "Megatron-LM has" not in said


def test_the_count_of_a_proposal(three, say):
    said = say("how many accumulation steps in 2", three)
    assert said.focus == three.conversation.order[1]


def test_two_plans_on_one_part(three, say):
    assert "exposed communication" in say("1 vs 2 on comms", three).text
    assert "lowest HBM use" in say("2 or 3, if i worry about oom", three).text
    assert "smallest distance" in say("which is less work, 1 or 3?", three).text


@pytest.mark.parametrize(
    ("typed", "meant"),
    [
        ("the memroy of that", "the memory of that"),
        ("waht is the bottelneck", "what is the bottleneck"),
        ("throughpt per chip", "throughput per chip"),
        ("the form of the trial", "the form of the trial"),
        ("--use-distirbuted-optimizer", "--use-distirbuted-optimizer"),
    ],
)
def test_letters_that_changed_places(typed, meant):
    assert well_spelt(typed) == meant


def test_what_is_misspelt_is_answered(dense, say):
    assert say("memroy of teh first one?", dense).topic == Topic.MEMORY.value


def test_flags_of_the_compiler_are_no_line_of_what_runs(dense, say):
    say("what about int8", dense)
    said = say("which xla flags for that", dense).text
    assert said.startswith("Compiler flags")
    assert "as MaxText overrides" not in said
