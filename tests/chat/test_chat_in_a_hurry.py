"""Turns as they are typed in haste: a proposal by its bare number, the line to paste, what speaks against a plan."""

import re

import pytest

from asap.experiments import Experiment, ExperimentStore
from asap.plans import Plan

TENSOR = "llama-8b-tensor-16"
PAPER = "paper-v5p-512"
LARGE = "llama-8b-too-large"


@pytest.fixture
def llama(start):
    return start(TENSOR)


@pytest.mark.parametrize(
    "text",
    [
        "3 looks safer no?",
        "ok 3, whats the line",
        "what do i lose w 3 instead of 1",
        "cost of 1T tokens at 1.2$/chip-hr w 3?",
        "bump bs to 512 on 3, still ok?",
        "whats mfu now vs 3",
    ],
)
def test_a_bare_number_is_a_proposal_where_one_is_chosen(start, say, text):
    chat = start("three")
    third = str(chat.conversation.order[2])
    assert third in say(text, chat).text


@pytest.mark.parametrize(
    "text", ["what about pipeline with 2", "and how about going to a pod with 3 slices", "tp on 2"]
)
def test_a_bare_number_of_something_counted_is_no_proposal(llama, say, text):
    say(text, llama)
    assert llama.conversation.focus not in llama.conversation.order[1:]


@pytest.mark.parametrize(
    "text",
    [
        "paste it", "ok paste that", "whats the line", "give me the cmd for it", "what's the command for 1",
        "give me flags + mesh for it", "send the launch command please", "ok 1, whats the line",
    ],
)  # fmt: skip
def test_what_is_to_be_pasted(llama, say, text):
    said = say(text, llama)
    assert said.topic == "maxtext"
    assert "ici_fsdp_parallelism=256" in said.text


def test_the_line_is_of_the_plan_that_was_chosen(llama, say):
    say("what do i lose if i go w 3 instead of 1", llama)
    assert "ici_context_parallelism=64" in say("give me the cmd for it", llama).text


@pytest.mark.parametrize("text", ["get the command to capture a profile", "whats the line rate of ici"])
def test_another_line_is_no_launch_line(llama, say, text):
    said = say(text, llama)
    assert said.topic != "maxtext" or "not sure" in said.text


@pytest.mark.parametrize(
    "text", ["whats the risk w 3", "any downsides to 3", "what could go wrong with 3", "3 - whats the catch"]
)
def test_what_speaks_against_a_plan(llama, say, text):
    said = say(text, llama).text
    assert "What speaks against it:" in said
    assert str(llama.conversation.order[2]) in said
    assert "At the slow end" in said


def test_what_breaks_with_a_plan_written_in_part(llama, say):
    assert "data=32 model=8" in say("what breaks if i go data=32 model=8", llama).text


def test_a_changed_run_is_no_plan_that_something_speaks_against(llama, say):
    assert say("what breaks if the batch doubles", llama).topic == "what if"


@pytest.mark.parametrize(
    "text",
    [
        "any downsides of offloading",
        "what's the risk of oom w 2",
        "what could break the run",
    ],
)
def test_a_technique_is_no_plan_that_something_speaks_against(llama, say, text):
    assert "What speaks against it:" not in say(text, llama).text


@pytest.mark.parametrize("text", ["so then?", "now what", "ok what next?", "so what now"])
def test_what_follows_is_the_next_test(llama, say, text):
    said = say(text, llama)
    assert said.topic == "first"
    assert "proposal 1" in said.text


@pytest.mark.parametrize("text", ["3 looks safer no?", "is 3 or 2 safer", "isn't 3 less risky?", "3 seems cheaper"])
def test_a_comparison_that_is_claimed_is_answered_by_its_figure(start, say, text):
    said = say(text, start("three"))
    assert said.topic == "rank by"
    assert not said.changed


def test_a_quoted_interval_is_explained(start, say):
    chat = start(PAPER)
    against = chat.conversation.proposals[1].prediction.relative_step_time
    low, high = (round((end - 1) * 100) for end in (against.low, against.high))
    said = say(f"2 says {low} to {high:+}, is that a joke", chat)
    assert said.topic == "sure"
    assert "2 doublings away" in said.text


@pytest.mark.parametrize("text", ["whats bs/chip", "batch per gpu?", "how big is the local batch now"])
def test_the_batch_of_a_device(llama, say, text):
    said = say(text, llama).text
    assert "16.0 a rank" in said
    assert "batch over devices is 1.00" in said


def test_why_an_axis_of_now_costs(llama, say):
    said = say("how come tp16 is so bad here", llama).text
    assert re.search(
        r"Collectives of model that nothing hides take \d+ % of the step \(all-reduce \d+ %; modelled\)", said
    )


def test_enough_headroom(llama, say):
    said = say("1 leaves 4.6G free, enuf headroom?", llama).text
    assert "P(fits)" in said
    assert re.search(r"remat=\S+: \d+\.\d+ GiB \(", said)


@pytest.mark.parametrize("text", ["nah batch is 512", "no, batch is 512 for us", "btw gbs=512"])
def test_a_batch_that_is_put_right_is_recorded(llama, say, text):
    assert [str(fact) for fact in say(text, llama).evidence] == ["global batch 512"]


def test_a_figure_that_was_just_stated_changes_nothing_more(llama, say):
    say("batch is 512", llama)
    said = say("and w/ 512 whats tok/s per chip", llama)
    assert said.topic == "throughput"
    assert "tokens/s/chip" in said.text


@pytest.mark.parametrize(
    "text",
    ["oops that 4.9 was w/ profiler on, drop it", "the 4.9 doesnt count", "ignore that 4.9, wrong run"],
)
def test_a_figure_is_taken_back_by_its_value(llama, say, text):
    say("ran 1, got 4.9s/step", llama)
    said = say(text, llama)
    assert len(said.retracted) == 1
    assert not said.evidence
    assert not llama.conversation.evidence


def test_what_is_asked_beside_a_retraction_is_answered(llama, say):
    say("batch is 512", llama)
    said = say("forget the batch thing. whats mfu now?", llama)
    assert len(said.retracted) == 1
    assert said.topic == "efficiency"
    assert "MFU" in said.text


def test_what_is_asked_after_a_topic_is_dropped_is_answered(llama, say):
    said = say("ok forget cp. whats mfu now vs w/ 1", llama).text
    assert re.search(r"what runs now .*tokens/s, MFU \d+\.\d %", said)
    assert "MFU 48.8 %" in said
    assert "nothing of that on record" not in said


@pytest.mark.parametrize(
    ("text", "limit"),
    [
        ("we cant use tp>4, ici is weird on this pod", "model is at most 4"),
        ("tp>4 hangs", "model is at most 4"),
        ("no tp > 8 please", "model is at most 8"),
        ("we cant use tp above 4", "model is at most 4"),
        ("must not have tp >= 16", "model is at most 15"),
        ("tp < 4 is not possible", "model is at least 4"),
        ("we need tp>=4", "model is at least 4"),
    ],
)
def test_a_bound_that_is_denied_is_its_opposite(llama, say, text, limit):
    assert [str(fact) for fact in say(text, llama).evidence] == [f"constraint: {limit}"]


def test_hours_are_no_slices(llama, say):
    assert "slices" not in say("if i only have 2h on the slice what do i run", llama).text


def test_which_saves_most_is_asked_of_the_proposals(llama, say):
    said = say("which one saves most gpu hrs", llama)
    assert said.topic == "rank by"
    assert "chip-hours for a billion tokens" in said.text


def test_the_number_of_a_proposal_is_no_budget(llama, say):
    assert "- 1 chip hours are" not in say("cost of 1 in gpu-hrs for 1T tokens", llama).text


def test_one_or_the_other_compares_both(llama, say):
    said = say("so 1 or 2, yes or no answer", llama)
    assert said.topic == "compare"
    assert "I read the plan alone" not in said.text


@pytest.mark.parametrize("text", ["batch stays", "id rather not change the batch"])
def test_the_batch_is_kept_where_it_stays(llama, say, text):
    assert "constraint: the batch stays as it is" in say(text, llama).text


def test_the_smallest_change_is_asked_for_where_a_run_is_out_of_memory(start, say):
    assert (
        "those that make it fit when changed alone" in say("it ooms rn, smallest thing to change?", start(LARGE)).text
    )


def test_without_a_proposal_there_is_none_to_weigh(start, say):
    run = {
        "id": "launches", "model": {"layers": 12, "d_model": 512, "d_ff": 2048, "heads": 8, "vocab": 50304},
        "workload": {"global_batch": 32, "sequence_length": 1024, "precision": "bf16", "framework": "Megatron-Core"},
        "hardware": {"name": "h100-8", "chip": "h100", "devices": 8},
        "plan": Plan.parse("replica=8 microbatches=1 remat=none").model_dump(mode="json"),
    }  # fmt: skip
    ExperimentStore().add(Experiment.model_validate(run), replace=True)
    chat = start("launches")
    assert not chat.conversation.order
    assert "There is no proposal to weigh" in say("whats the catch", chat).text
