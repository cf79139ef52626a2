"""Figures with the settings under which they were measured, and facts of the run beside a figure."""

import pytest

from tests.chat.conversations import ask

pytestmark = pytest.mark.slow


@pytest.mark.parametrize(
    ("text", "plan", "said"),
    [
        ("at mbs 4 we clocked 6.3 s", "microbatches=8 remat=full", "measured 6.3 s"),
        ("selective recompute ran at 5.9 s", "microbatches=16 remat=selective", "measured 5.9 s"),
        ("remat=none died with an oom", "microbatches=16 remat=none", "ran out of memory"),
        ("40 GB max reserved with 4 microbatches", "microbatches=4 remat=full", "HBM in use 37.3 GiB"),
        ("with 2 vpp stages i get 5.7 s", "microbatches=16 pipeline_repeats=2 remat=full", "measured 5.7 s"),
        ("hbm shows 61% with mbs 4", "microbatches=8 remat=full", "HBM in use 61.0 %"),
        ("selective remat was 12 % faster", "microbatches=16 remat=selective", "measured 0.893"),
    ],
)
def test_a_figure_is_of_the_settings_that_it_was_measured_with(text, plan, said, megatron):
    (fact,) = ask(megatron, text).evidence
    assert str(fact.plan) == f"replica=4 model=4 {plan}"
    assert said in str(fact)


def test_settings_beside_a_proposal_are_of_its_plan(megatron):
    second = megatron.conversation.order[1]
    (fact,) = ask(megatron, "proposal 2 with full recompute took 5.5 s").evidence
    assert fact.plan is not None
    assert fact.plan == second.model_copy(update={"remat": fact.plan.remat})
    assert str(fact.plan.remat) == "full"


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("on 32 gpus we got 3.1 s", "another number of chips"),
        ("with gbs 256 the step took 12 s", "another global batch"),
        ("proposal 1 at seq 8k ran at 9 s", "another sequence length"),
        ("in fp8 it took 4.4 s", "fp8"),
        ("on one node we see 11 s", "another number of chips"),
        ("zero bubble ran at 5.2 s", "zero-bubble schedules"),
    ],
)
def test_a_figure_of_another_run_is_not_recorded(text, reason, megatron):
    answer = ask(megatron, text)
    assert not answer.evidence
    assert f"is of a run with {reason}" in answer.text


@pytest.mark.parametrize("text", ["with hsdp we measured 5 s", "under pp it ran at 5.4 s", "using cp we got 6 s"])
def test_a_figure_under_an_axis_without_its_degree_is_asked_about(text, megatron):
    answer = ask(megatron, text)
    assert not answer.evidence
    assert "names no degrees" in answer.text


@pytest.mark.parametrize(
    "lines", [("our batch is 64 and the step takes 3.5 s",), ("our gbs is 64", "step takes 3.5 s")]
)
def test_a_step_is_set_beside_what_is_expected_of_the_batch_that_was_stated(lines, megatron):
    answer = ask(megatron, *lines)
    assert "replica=4 model=4 microbatches=8 remat=full measured 3.5 s" in [str(fact) for fact in answer.evidence]
    predicted = next(line for line in answer.text.splitlines() if "predicted" in line)
    assert float(predicted.partition("predicted ")[2].split()[0]) < 5


@pytest.mark.parametrize(
    ("lines", "facts"),
    [
        (("our step has 512 seqs",), ["global batch 512"]),
        (("we are fixed at 512 sequences",), ["global batch 512", "constraint: the batch stays as it is"]),
        (("batch must stay at 256",), ["constraint: the batch stays as it is"]),
        (("seq is locked at 8192",), ["sequence length 8192", "constraint: the sequence stays as it is"]),
        (("gbs 512, seq 8k, step 40 s",), ["global batch 512", "sequence length 8192"]),
        (("what batch do you assume?", "it's 512 and seq 8k"), ["global batch 512", "sequence length 8192"]),
    ],
)
def test_sequences_are_counted_and_tokens_are_their_length(lines, facts, dense):
    assert [str(fact) for fact in ask(dense, *lines).evidence][: len(facts)] == facts
