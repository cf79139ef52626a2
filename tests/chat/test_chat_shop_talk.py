"""Lines as engineers type them: words left out, short forms, plans in short, pasted lines of a log."""

import pytest

from asap.evidence.claims import Claim
from tests.chat.conversations import ask

pytestmark = pytest.mark.slow
MEGATRON_STEP = " iteration  {step}/ 1000 | elapsed time per iteration (ms): {ms} | lm loss: 2.1E+00 |"


# What is left out


@pytest.mark.parametrize("follow_up", ["um, and for proposal 1?", "well, with proposal 1?"])
def test_the_bill_of_before_is_asked_again_of_another_plan(follow_up, dense):
    ask(dense, "what do 2T tokens cost at $3 a chip hour?")
    said = ask(dense, follow_up).text
    assert said.startswith("proposal 1 (")
    assert "2,000,000,000,000 tokens take" in said
    assert "at $3 a chip hour" in said


@pytest.mark.parametrize("follow_up", ["on v5p-64 instead?", "and on v6e-64"])
def test_the_bill_of_before_is_asked_again_of_other_chips(follow_up, dense):
    ask(dense, "what do 2T tokens cost at $3 a chip hour?")
    said = ask(dense, follow_up).text
    assert "instead of 64 v5e chips" in said
    assert "at $3 a chip hour" in said


@pytest.mark.parametrize("follow_up", ["which part is the biggest?", "and what takes most?", "what is the main chunk"])
def test_the_largest_part_is_of_what_was_spoken_of(follow_up, too_large):
    ask(too_large, "what fills the HBM?")
    assert ask(too_large, follow_up).text.startswith("what runs now (data=64 remat=full): activations ")


def test_a_comparison_without_a_subject_is_of_the_plan_before(dense):
    ask(dense, "what about data=8 model=8?")
    answer = ask(dense, "better than what we have now?")
    assert answer.topic == "compare"
    assert "data=8 model=8 remat=full" in answer.text


def test_a_plan_after_collectives_is_asked_of_as_a_whole(dense):
    ask(dense, "which axis communicates most?")
    assert "step time" in ask(dense, "what if tp=8?").text


# Parts, sizes, short forms


@pytest.mark.parametrize(
    ("text", "part"),
    [("how large are the activations?", "activations"), ("adam moments, size on each chip?", "optimizer")],
)
def test_the_part_of_memory_that_is_named_comes_first(text, part, dense):
    assert f": {part} " in ask(dense, text).text.splitlines()[0]


@pytest.mark.parametrize("text", ["bs 512?", "batch of 512, how long is the step?"])
def test_a_short_form_of_the_batch_is_the_batch(text, dense):
    assert ask(dense, text).text.startswith("With a global batch of 512 instead of 256")


def test_a_local_batch_is_of_a_data_rank(torchtitan, dense):
    assert ask(torchtitan, "lbs 2?").text.startswith("With a global batch of 16")
    assert "a global batch of 32 (4 for each of 8)" in ask(torchtitan, "what if the local batch is 4?").text
    assert "a global batch of 512 (8 for each of 64)" in ask(dense, "local batch size 8?").text


def test_a_stated_local_batch_or_microbatch_is_no_global_batch(torchtitan, megatron):
    (fact,) = ask(torchtitan, "our local batch is 4").evidence
    assert (fact.claim, fact.value) == (Claim.BATCH, 32)
    (fact,) = ask(megatron, "our micro batch size is 4").evidence
    assert fact.claim is Claim.INCUMBENT
    assert fact.plan is not None
    assert fact.plan.microbatches == 8
    answer = ask(megatron, "our micro batch size is 5")
    assert not answer.evidence
    assert "do not divide" in answer.text


def test_a_chip_is_no_word_of_another_language(dense):
    assert "64 v5p chips instead of 64 v5e" in ask(dense, "on v5p-128 instead").text


def test_a_rate_of_ports_needs_no_b(megatron):
    assert "With 25.0 GB/s a device between nodes" in ask(megatron, "is it the fabric? nodes have 4x400G").text


# Logs


def test_one_line_of_a_log_is_a_measurement_of_what_runs(megatron):
    (fact,) = ask(megatron, MEGATRON_STEP.format(step=40, ms=5250.0)).evidence
    assert (fact.claim, fact.value) == (Claim.STEP_TIME, 5.25)
    assert fact.plan == megatron.conversation.study.plan


def test_a_step_of_the_warm_up_alone_is_none(megatron):
    answer = ask(megatron, MEGATRON_STEP.format(step=1, ms=61000.0))
    assert not answer.evidence
    assert "three later steps" in answer.text


# Plans in short, and what a short question leaves out


def test_a_proposal_has_a_short_name(three):
    (fact,) = ask(three, "ran P3 overnight, 9.1 s").evidence
    assert fact.plan == three.conversation.opening[2]
    (fact,) = ask(three, "p2 is dead: OOM at 17.1G").evidence
    assert (fact.claim, fact.plan) == (Claim.OUT_OF_MEMORY, three.conversation.opening[1])


def test_the_memory_of_a_plan_or_a_change_is_asked_for_in_one_word(dense):
    ask(dense, "what about tp=8?")
    assert ask(dense, "hbm?").text.startswith("data=8 model=8 remat=full")
    ask(dense, "what if the batch was 4096")
    said = ask(dense, "would it fit?").text
    assert said.startswith("data=16 model=4 remat=full with a global batch of 4096 instead of 256 does not fit")
    assert "data=64 remat=full" in ask(dense, "what about tp=1").text


def test_what_fills_the_memory_is_asked_of_the_run(dense):
    ask(dense, "explain proposal 2")
    assert ask(dense, "what fills the HBM?").text.startswith("what runs now")


def test_the_numerics_of_another_proposal_are_asked_in_short(dense):
    ask(dense, "does proposal 1 change what is trained?")
    assert ask(dense, "and proposal 2?").text.startswith(
        f"{dense.conversation.order[1]}: nothing that is trained changes"
    )


def test_chips_of_a_node_are_no_chips_of_the_run(megatron):
    assert "With 8 chips" not in ask(megatron, "tp=8 is fine, we have 8 gpus per node, no?").text


@pytest.mark.parametrize("text", ["32 gpus with the same batch per gpu?", "weakly scaled to 32 GPUs?"])
def test_the_batch_grows_with_the_chips_where_each_keeps_its_own(text, megatron):
    said = ask(megatron, text).text
    assert said.startswith(
        "With 32 chips instead of 16 and a global batch of 256 instead of 128, as much for each chip"
    )
    assert "tokens/s a chip, " in said


def test_what_is_not_of_this_run_is_no_fact(dense):
    assert not ask(dense, "we used a batch of 1024 there, not this run").evidence


def test_memory_that_a_tool_reports_is_a_fact_and_can_be_corrected(megatron):
    ask(megatron, "turn off recompute?")
    (fact,) = ask(megatron, "we did that, it peaked at 61 GB").evidence
    assert (fact.claim, fact.stated) == (Claim.HBM_BYTES, 61)
    answer = ask(megatron, "scratch that, it was 66")
    assert answer.retracted == (fact,)
    assert answer.evidence[0].stated == 66


def test_a_technique_is_named_and_no_more(megatron):
    assert "The distributed optimizer (ZeRO-1) is" in ask(megatron, "and the distributed optimizer?").text
    assert "asynchronous tensor parallelism" in ask(megatron, "would asynchronous TP help?").text


@pytest.mark.parametrize("text", ["explain counts", 'what does "counts" stand for in the table'])
def test_a_word_of_the_report_is_explained(text, dense):
    assert ask(dense, text).text.startswith("What counts decides the order")


@pytest.mark.parametrize("text", ["theoretical lower bound of the step?", "how short could a step be at best"])
def test_the_least_step_is_the_models_work_at_the_peak(text, dense):
    assert "no step with this model, batch and precision is shorter" in ask(dense, text).text


def test_custom_calls_are_judged_by_the_diagnosis(start):
    assert "no FLOPs: opaque, not inefficient" in ask(start("paper-v5p-512"), "are the custom calls bad?").text


def test_a_batch_that_is_so_already_changes_nothing(start):
    assert ask(start("paper-v5p-512"), "what if the batch is 256?").text.startswith("That is so already")
