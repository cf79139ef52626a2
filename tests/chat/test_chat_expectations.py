"""What engineers expect: gains of a technique, one kind of parallelism over another, a batch that follows the chips."""

import pytest

from asap.experiments import ExperimentStore
from asap.experiments.create import Statement, create_experiment
from tests.chat.conversations import ask

pytestmark = pytest.mark.slow


@pytest.mark.parametrize(
    ("lines", "said"),
    [
        (("fp8 is supposed to be 2x right",), "you name 2 times as fast"),
        (("fp8?", "we just got 20 % out of that"), "you name 20 % more"),
        (("twice the batch should give 30 % more throughput",), "you name 30 % more"),
    ],
)
def test_a_gain_that_is_named_is_set_beside_the_one_that_is_expected(lines, said, megatron):
    answer = ask(megatron, *lines)
    assert "the model expects" in answer.text
    assert said in answer.text
    assert not answer.evidence


def test_what_is_saved_of_memory_is_set_beside_memory(megatron):
    assert "HBM is expected to be" in ask(megatron, "bf16 moments should save 40 % memory no").text


def test_narrower_arithmetic_leaves_what_is_no_product(megatron):
    assert "shortens the matrix products alone" in ask(megatron, "fp8 should be twice as fast no").text


@pytest.mark.parametrize("text", ["ddp vs fsdp?", "is fsdp better than ddp here", "zero-3 or ddp for this"])
def test_two_kinds_of_data_parallelism_are_compared_over_the_same_ranks(text, megatron):
    answer = ask(megatron, text)
    assert "The 4 ranks that" in answer.text
    assert "data=4 model=4" in answer.text


def test_kinds_that_cannot_take_all_ranks_are_compared_by_their_best_plans(dense):
    answer = ask(dense, "tp or pp?")
    assert "The best plan with the one and without the other" in answer.text or "all in the one" in answer.text


def test_a_micro_batch_beyond_a_data_rank_needs_a_larger_batch(torchtitan):
    text = ask(torchtitan, "what if mbs 8").text
    assert "a data rank has 2 sequences of a step, so a micro-batch of 8 needs a global batch of 64" in text
    assert "so already" not in text


@pytest.mark.parametrize(
    "text", ["and if the batch scales along", "grow the batch accordingly", "same batch per gpu tho"]
)
def test_the_batch_follows_the_chips_that_were_spoken_of(text, megatron):
    answer = ask(megatron, "what about 32 gpus", text)
    assert "With 32 chips instead of 16 and a global batch of 256 instead of 128" in answer.text
    assert "replica=8 model=4 microbatches=16" in answer.text


def test_a_batch_that_was_supposed_is_not_supposed_twice(megatron):
    answer = ask(megatron, "gbs 512", "tokens/s at that")
    assert "microbatches=64 remat=full with a global batch of 512 instead of 128" in answer.text


def test_what_follows_of_a_change_is_no_further_change(megatron):
    answer = ask(megatron, "what if mbs 4", "then the count halves and the bubble gets worse?")
    assert "so already" not in answer.text


@pytest.mark.parametrize("text", ["every microbatch gathers again? thats 3x the traffic", "2x the cost per batch no?"])
def test_a_factor_of_what_a_step_costs_changes_no_batch(text, megatron):
    assert "a global batch of" not in ask(megatron, text).text


def test_a_lone_number_far_below_the_batch_is_none(megatron):
    assert "global batch of 1 " not in ask(megatron, "what if batch 512", "1 not ok?").text


def test_a_figure_of_the_engine_that_is_asked_about_is_no_measurement(megatron):
    from asap.evidence.anchor import modelled_now

    now = modelled_now(megatron.conversation.study)
    assert now is not None
    assert now.mfu is not None
    answer = ask(megatron, f"mfu {now.mfu.value * 100:.1f}% - how is that counted")
    assert not answer.evidence
    assert "count what the model needs" in answer.text


SMALL = (
    "torchrun --nproc_per_node 8 pretrain_gpt.py --num-layers 12 --hidden-size 512 --num-attention-heads 8"
    " --seq-length 1024 --micro-batch-size 4 --global-batch-size 32 --bf16 --vocab-size 50304"
)


@pytest.fixture
def waiting(start, tmp_path):
    """A chat over a run that waits for its host, where no plan gains anything and CUDA graphs are a test."""
    script = tmp_path / "small.sh"
    script.write_text(f"{SMALL}\n", encoding="utf-8")
    run = create_experiment("waiting", Statement(hardware="h100-8"), config=script)
    ExperimentStore().add(run, replace=True)
    return start("waiting")


@pytest.mark.parametrize("text", ["so then?", "any ideas?", "now what"])
def test_the_setting_to_test_is_named_where_no_plan_gains(text, waiting):
    assert "--cuda-graph-impl local" in ask(waiting, text).text


def test_a_setting_that_cannot_be_used_is_not_named_again(waiting):
    answer = ask(waiting, "we cannot use cuda graphs, shapes are dynamic", "so what now")
    assert "cuda-graph-impl" not in answer.text


def test_an_operation_is_told_what_its_roof_would_save(start):
    answer = ask(start("paper-v5p-512"), "all-gather gemm at 79 % of roofline seems fine")
    assert "at its roof it would save 0.09 % of the step" in answer.text


@pytest.mark.parametrize("text", ["did you scale the batch with the chips?", "are you keeping the seq fixed?"])
def test_what_every_plan_is_evaluated_with_is_told(text, megatron):
    said = ask(megatron, text).text
    assert "global batch: 128" in said
    assert "neither follows the plan or the chips" in said
