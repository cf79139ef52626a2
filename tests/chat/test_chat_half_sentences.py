"""Half sentences: a figure that is wanted, settings of another launcher, one part of two plans, a lone error."""

import pytest

from asap.evidence.claims import Claim
from asap.experiments import Experiment, ExperimentStore, HardwareReference
from asap.models import Workload, find_architecture
from asap.plans import Plan
from asap.proposals.selection.candidate import fits
from tests.chat.conversations import ask

TENSOR = "llama-8b-tensor-16"
LARGE = "llama-8b-too-large"
PAPER = "paper-v6e-16"


@pytest.fixture
def llama(start):
    return start(TENSOR)


@pytest.fixture
def large(start):
    return start(LARGE)


def _facts(chat):
    return [str(fact) for fact in chat.conversation.evidence]


@pytest.mark.parametrize(
    "text",
    [
        "must do 1800 tok/s/gpu", "boss wants 500k tokens/s, doable?", "is 420k tok/s realistic here",
        "we have to get to 1.9k tokens/s per chip", "how far are we from 55 % mfu", "target 450k tok/s",
    ],
)  # fmt: skip
def test_a_rate_that_is_wanted_is_a_target_and_no_measurement(llama, say, text):
    said = say(text, llama)
    assert said.topic == "target"
    assert "The odds that a proposal reaches it" in said.text
    assert not said.evidence


def test_what_no_run_reaches_is_said(llama, say):
    assert "no run of any model has published more" in say("need 9k tok/s/chip", llama).text


@pytest.mark.parametrize("text", ["we measured 1900 tok/s/chip", "it now does 480k tokens/s"])
def test_a_rate_that_was_measured_is_recorded(llama, say, text):
    assert [fact.claim for fact in say(text, llama).evidence] == [Claim.THROUGHPUT]


@pytest.mark.parametrize("text", ["by how many GiB do we overshoot", "how bad is it", "how much too big is this"])
def test_what_is_missing_of_the_hbm_is_told_where_a_run_does_not_fit(large, say, text):
    said = say(text, large)
    assert said.topic == "memory"
    assert "too much" in said.text


def test_where_a_run_fits_nothing_is_missing(llama, say):
    assert "By " not in say("how bad is it", llama).text


@pytest.mark.parametrize(
    "text",
    [
        "RESOURCE_EXHAUSTED: Out of memory allocating 9126805504 bytes",
        "[rank12]: torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 3.50 GiB. GPU 4 has 1.2 GiB free",
        "XlaRuntimeError: RESOURCE_EXHAUSTED: Ran out of memory in memory space hbm. Used 17.1G of 15.8G hbm",
    ],
)
def test_a_lone_line_of_a_program_that_ran_out_of_memory_is_of_what_runs(llama, say, text):
    (fact,) = say(text, llama).evidence
    assert (fact.claim, fact.plan) == (Claim.OUT_OF_MEMORY, llama.conversation.study.plan)


def test_an_error_behind_a_plan_that_was_run_is_of_that_plan(llama):
    third = llama.conversation.order[2]
    said = ask(llama, "just tried 3", "RESOURCE_EXHAUSTED: Out of memory while trying to allocate 7.1G")
    assert [(fact.claim, fact.plan) for fact in said.evidence] == [(Claim.OUT_OF_MEMORY, third)]


@pytest.mark.parametrize(
    "text", ["what does RESOURCE_EXHAUSTED: Out of memory mean?", "quota: RESOURCE_EXHAUSTED: 429"]
)
def test_an_error_that_is_asked_about_or_of_something_else_is_no_fact(llama, say, text):
    assert not say(text, llama).evidence


@pytest.mark.parametrize("text", ["kicked off 2", "we're running proposal 1 now"])
def test_a_plan_that_was_run_without_a_result_is_asked_about(llama, say, text):
    said = say(text, llama)
    assert "What came of" in said.text
    assert not said.evidence


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("2 in megatron args", "--use-megatron-fsdp"),
        ("what would 2 be as a torchtitan toml", "data_parallel_shard_degree = 256"),
        ("and nemo?", "NeMo"),
    ],
)
def test_a_plan_in_the_words_of_another_launcher(llama, say, text, line):
    say("tell me about 2", llama)
    said = say(text, llama).text
    assert line in said
    assert "ici_" not in said


def test_a_launcher_without_words_for_a_plan_says_so_in_a_line(llama, say):
    said = say("megatron arguments for 1?", llama).text
    assert "Megatron-LM has no recomputation like remat=context" in said
    assert "\n" not in said


def test_a_launcher_that_needs_a_configuration_says_so(llama, say):
    assert "on top of a configuration of its own" in say("deepspeed json for 2", llama).text


def test_the_own_launcher_stays_the_own_launcher(llama, say):
    assert "ici_fsdp_parallelism=256" in say("1 as maxtext yaml", llama).text


@pytest.mark.parametrize("text", ["args please", "line for 1", "take 1. flags pls"])
def test_nothing_but_what_is_wanted_is_a_launch_line(llama, say, text):
    assert "ici_fsdp_parallelism=256" in say(text, llama).text


@pytest.mark.parametrize("text", ["why does 2 need that many env vars", "explain the compiler flags of 2"])
def test_flags_of_a_proposal_are_told_by_their_purpose(large, say, text):
    said = say(text, large)
    assert "something is kept in host memory" in said.text
    assert "- copies with host memory in flight: xla_tpu_host_transfer_overlap_limit" in said.text


@pytest.mark.parametrize("text", ["1 vs 3 just the collectives", "difference of 1 and 3 in communication only"])
def test_plans_are_compared_by_one_part_alone(llama, say, text):
    said = say(text, llama).text
    assert said.count("exposed communication") == 2
    assert "P(faster)" not in said


def test_plans_are_compared_by_one_figure_alone(llama, say):
    said = say("compare 1 and 2 purely on memory", llama)
    assert "lowest HBM use of the 2" in said.text


@pytest.mark.parametrize(
    ("text", "yes"),
    [
        ("doesn't 3 use context parallelism", True),
        ("does 2 rely on offloading", False),
        ("is 1 the one with tp", False),
    ],
)
def test_whether_a_proposal_has_a_technique(llama, say, text, yes):
    assert say(text, llama).text.startswith("Yes: " if yes else "No: ")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("btw the embeddings are shared", "The record has tied_embeddings=false"),
        ("we have 8 kv heads fwiw", "The record has it so: kv_heads=8"),
        ("its vocab is 50k", "model.vocab=50000"),
        ("vocab is 128k btw", "The record has it so"),
    ],
)
def test_what_is_said_of_the_model_is_set_beside_its_record(llama, say, text, said):
    answer = say(text, llama)
    assert said in answer.text
    assert not answer.evidence


def test_a_setting_by_its_name_is_an_axis(llama, say):
    said = say("what does ici_context_parallelism do vs ici_sequence_parallelism", llama).text
    assert "ici_context_parallelism: the degree of context parallelism" in said
    assert "ici_sequence_parallelism: no degree of an axis that I know" in said


@pytest.mark.parametrize(
    "text",
    [
        "every 100th step takes 14 s, otherwise 10.1", "step is 10.1 s but jumps to 14 s now and then",
        "we get a 14 s step every 30 steps or so, the rest take 10.1",
    ],
)  # fmt: skip
def test_single_long_steps_are_not_the_step(llama, say, text):
    said = say(text, llama)
    assert [fact.value for fact in said.evidence] == [10.1]
    assert "of single steps" in said.text


@pytest.mark.parametrize("text", ["the loss got weird with 2", "2 diverges, grad norm explodes"])
def test_a_loss_that_turns_bad_is_told_apart_from_speed(llama, say, text):
    said = say(text, llama)
    assert said.topic == "learning"
    assert not {fact.claim for fact in said.evidence} & {Claim.STEP_TIME, Claim.OUT_OF_MEMORY}


def test_a_plan_asks_for_no_other_learning_rate(llama, say):
    said = say("raise warmup with 2?", llama).text
    assert "nothing that is trained changes" in said
    assert "so does the recipe" in said


@pytest.mark.parametrize("text", ["openai gets 500 tflops per gpu, and us?", "how many tflops are we at"])
def test_flops_of_the_run_itself(torchtitan, say, text):
    said = say(text, torchtitan).text
    assert "what runs now" in said
    assert "TFLOP/s a device, MFU" in said


@pytest.mark.parametrize("text", ["is 787 tok/s/chip slow for this?", "are 200 tflops/chip any good"])
def test_a_rate_is_judged(llama, say, text):
    said = say(text, llama)
    assert said.topic == "plausible"
    assert "the best published run" in said.text


@pytest.mark.parametrize("text", ["whats the theoretical best step time", "what would an ideal run do"])
def test_how_fast_it_could_be_at_all(llama, say, text):
    said = say(text, llama).text
    assert "no step with this model, batch and precision is shorter" in said
    assert "The fastest proposal" in said


def test_bytes_of_collectives_are_not_made_up(llama, say):
    said = say("how many GB go over ici per step", llama).text
    assert "not its bytes" in said
    assert "all-reduce of tensor parallelism adds" in said


def test_a_quoted_verdict_is_of_the_plan_that_has_it(large, say):
    said = say("how sure are you about 'does not fit'", large)
    assert str(large.conversation.study.plan) in said.text
    assert "36.3 GiB" in said.text


def test_a_quoted_figure_of_hbm_is_broken_down(large, say):
    assert "activations: 16.0 GiB" in say("where do the 36 come from", large).text


@pytest.mark.parametrize("text", ["could 3 run on 128 chips", "will 3 fit on 128 chips"])
def test_a_number_before_a_verb_is_a_proposal(llama, say, text):
    assert "data=2 seq=64" in say(text, llama).text


def test_a_batch_and_short_sequences_are_both_taken(start, say):
    chat = start(PAPER)
    say("gbs 64 of 2k tokens, that is what we run", chat)
    say("batch is 64 x 2k", chat)
    assert {"global batch 64", "sequence length 2048"} <= set(_facts(chat))


def test_what_others_tried_is_a_precedent(start, say):
    assert say("did anyone try more tensor before, how did it go", start(PAPER)).topic == "precedent"


def test_rings_of_the_torus_are_no_lever(llama, say):
    said = say("could you put fsdp on the long ring instead", llama)
    assert "no lever here" in said.text


def test_a_step_by_the_iteration_is_of_what_runs(megatron, say):
    (fact,) = say("got: 3.9 s/iter", megatron).evidence
    assert fact.plan == megatron.conversation.study.plan


@pytest.mark.parametrize("text", ["cap it at 12 GiB", "at most 12 GiB per chip", "keep below 12 GiB please"])
def test_so_many_bytes_and_no_more_is_a_limit(llama, say, text):
    (fact,) = say(text, llama).evidence
    assert fact.claim is Claim.CONSTRAINT


def test_the_most_that_was_used_is_no_limit(llama, say):
    (fact,) = say("hbm max was 11 GiB", llama).evidence
    assert fact.claim is Claim.HBM_BYTES


def test_a_constraint_behind_its_reason_is_taken(torchtitan, say):
    said = say("pipelines never worked for us, the code is not ready, no pp", torchtitan)
    assert _facts(torchtitan) == ["constraint: no stage axis"]
    assert "Recorded as evidence" in said.text


def test_parts_of_the_loss_are_no_vocabulary(large, say):
    said = say("what about vocab tiling of 16", large).text
    assert "loss_chunks=16" in said
    assert "vocab instead of" not in said


@pytest.mark.parametrize(
    ("text", "policy"),
    [
        ("only recompute layernorm", "selective.layernorm"),
        ("selective recompute of mlp and core_attn", "selective.core_attn+mlp"),
        ("recompute everything", "full"),
    ],
)
def test_modules_that_are_recomputed_are_read_by_their_names(megatron, say, text, policy):
    assert f"remat={policy}" in say(text, megatron).text


@pytest.mark.parametrize("text", ["2.9 s a step after warmup", "step is 2.9 once compiled"])
def test_a_step_behind_the_warm_up_is_a_step(megatron, say, text):
    assert [fact.value for fact in say(text, megatron).evidence] == [2.9]


@pytest.mark.parametrize("text", ["reduce grads in fp32?", "what if bf16 gradient all-reduce"])
def test_the_precision_of_sums_is_not_that_of_products(megatron, say, text):
    assert "gradients are summed" in say(text, megatron).text


def test_the_model_as_it_is_changes_nothing(llama, say):
    said = say("we have 32 layers, what would pp=4 do", llama).text
    assert "layers instead of" not in said
    assert "stage=4" in said


@pytest.mark.parametrize(
    ("text", "rate"), [("max tflops of the chip?", "197 TFLOP/s"), ("peak bandwidth?", "819 GB/s")]
)
def test_what_the_chip_can_do_at_most(llama, say, text, rate):
    assert rate in say(text, llama).text


@pytest.mark.parametrize("text", ["how many accumulation steps in 2", "mbs of 2?", "what mbs does 2 have"])
def test_microbatches_of_a_plan_are_told(torchtitan, say, text):
    second = torchtitan.conversation.order[1]
    said = say(text, torchtitan).text
    assert str(second) in said
    assert f"of the pipeline): {second.microbatches}" in said


def test_some_of_the_layers_are_no_other_model(llama, say):
    said = say("no remat for the first 8 layers", llama).text
    assert "layers instead of" not in said
    assert "remat=none" not in said


def test_files_of_a_run_are_no_settings(torchtitan, say):
    assert say("i've an nsys trace, where do i put it", torchtitan).topic != "maxtext"


def test_checkpoints_are_beside_the_step(torchtitan, say):
    assert "Checkpoints and evaluation" in say("ckpt overhead?", torchtitan).text


def test_a_capacity_factor_in_short(llama, start, say):
    assert "capacity factor" in say("cf 1.5 w/ 1", llama).text


@pytest.mark.parametrize(
    ("text", "plan"),
    [
        ("--tensor-model-parallel-size 2 --pipeline-model-parallel-size 2?", "model=2 stage=2"),
        ("what about tensor_parallel_degree = 8", "model=8"),
        ("ici_tensor_parallelism=2?", "model=2"),
    ],
)
def test_degrees_by_the_settings_of_any_launcher(megatron, say, text, plan):
    assert plan in say(text, megatron).text


def test_an_option_that_nothing_is_known_of_is_named(megatron, say):
    said = say("does --fancy-new-fusion do anything", megatron).text
    assert "I know no effect of --fancy-new-fusion" in said


def test_a_rate_per_chip_is_of_the_proposals_behind_it(llama, say):
    said = say("tok/s/gpu with 1 and 3", llama).text
    assert all(str(llama.conversation.order[rank]) in said for rank in (0, 2))


@pytest.mark.parametrize("text", ["anything which doesn't need offloading", "an option that is not offload?"])
def test_plans_that_are_not_something_are_looked_for(large, say, text):
    said = say(text, large)
    assert "Asked for, not recorded: nothing is kept in host memory" in said.text


def test_packed_sequences_are_as_long_as_they_are_packed(llama, say):
    assert _facts(llama) == []
    say("our documents are packed into 4k", llama)
    assert _facts(llama) == ["sequence length 4096"]


def test_hsdp_by_nodes(start, say, torchtitan):
    assert "replica=2 data=8" in say("hsdp, shard within the node", torchtitan).text


def test_a_flag_inside_its_variable_is_judged(llama, say):
    said = say("XLA_FLAGS=--xla_tpu_enable_async_collective_fusion=true needed?", llama).text
    assert "xla_tpu_enable_async_collective_fusion: collectives continue" in said


@pytest.mark.parametrize(
    ("text", "count"),
    [
        ("save every 200 steps takes 60 s", 200),
        ("eval each 50 steps needs 2 min", 50),
        ("a checkpoint every 2k steps takes 90 s", 2000),
    ],
)
def test_what_comes_every_so_many_steps_is_a_share_of_the_time(llama, say, text, count):
    said = say(text, llama)
    assert f"every {count} steps of" in said.text
    assert not said.evidence


@pytest.mark.parametrize("text", ["is cuda 12.1 too old", "torch 2.5 ok?"])
def test_versions_are_not_judged(torchtitan, say, text):
    assert "I judge no versions" in say(text, torchtitan).text


def test_steps_of_accumulation_in_short(large, say):
    assert "microbatches=4" in say("gas=4?", large).text


def test_what_does_not_fit_is_behind_whatever_it_gains(start, say):
    workload = Workload(global_batch=64, sequence_length=4096, framework="Megatron-Core", precision="bf16")
    hardware, plan = HardwareReference(name="h100-16"), Plan.parse("model=8 stage=2 microbatches=64 remat=full")
    model = find_architecture("llama2-70b")
    record = Experiment(id="staged", model=model, workload=workload, hardware=hardware, plan=plan)
    ExperimentStore().add(record, replace=True)
    staged = start("staged")
    ranked = staged.conversation.revised.ranked.candidates
    other = next(candidate.plan for candidate in ranked if not fits(candidate.prediction))
    said = say(f"why not {other}?", staged).text
    assert "It does not fit, and comes after every plan that does" in said
    assert "risk-adjusted" not in said
