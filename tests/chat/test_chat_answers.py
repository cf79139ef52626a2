"""Questions that need more than a topic: what a word means, what is split, what is kept, what is taken for granted."""

from dataclasses import replace

import pytest

from asap.chat import open_conversation
from asap.chat.chat import Chat
from asap.chat.understanding.words.settings.degrees import with_degrees_written
from asap.experiments import ExperimentStore
from asap.experiments.create import Statement, create_experiment
from asap.sharding_memory import new_session_name

pytestmark = pytest.mark.slow


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("what does P(faster) mean?", "probability that the plan has a shorter step"),
        ("how do I read the column counts?", "decides the order"),
        ("is the optimizer state sharded?", "optimizer state, gradients, parameters: over data (FSDP, 16)"),
        ("is 3 s per step plausible here?", "more than any run has published"),
        ("could a step take 10 s at all?", "within what is expected"),
        ("could we keep tensor parallelism at 4 and still gain?", "With model=4 kept, the best of"),
        ("could we keep model=3?", "cannot run"),
        ("why do you want fewer pipeline stages in the first proposal?", "stage (pipeline stages) stays at 1"),
        ("what would a chip-hour budget of 5000 buy us in tokens?", "5,000 chip hours are 78.1 hours"),
        ("how many GPU hours per day does this burn?", "1,536 chip hours a day"),
        ("how much slower is full remat than minimal?", "another rematerialisation (now full)"),
        ("sweep tp over 1 2 4 8", "\n8 | "),
        ("what would bf16 moments buy?", "first_moment=bf16 (MaxText has no setting for second_moment)"),
        ("what would weights in bf16 bring?", "With weight_precision=bf16"),
        ("should I use tensor parallelism?", "risk-adjusted gain"),
        ("p99 latency of a prompt?", "serves no requests"),
        ("which MaxText flags do I set for data=32 model=2?", "ici_tensor_parallelism=2"),
        ("which MaxText flags do I set for data=4 seq=4 model=4?", "as now: ici_tensor_parallelism=4"),
        ("is the 90% interval useful at all?", "90 % of cases"),
        ("what limits proposal 2?", ": Modelled, not measured: the step waits most for"),
        ("how many tokens a day?", "billion tokens a day"),
        ("tokens per week now and with proposal 1?", "what runs now (data=16 model=4 remat=full)"),
        ("how do I verify proposal 1?", "asap verify dense --plan"),
        ("what should the profile look like if you are right?", "- if the prediction is right, they show:"),
        ("how much goes into the MLP and how much into attention?", "attention scores"),
        ("put the optimizer state on the host", "With offload=optimizer"),
        ("is the optimizer offloaded?", "in host memory: neither"),
        ("which knob hardly matters?", "matters least for the step time"),
        ("how many chips do I need at least?", "none is known to fit on"),
        ("is model=4 the problem?", "Another degree of it, and nothing else, at best: "),
        ("what makes it fit?", "It fits as it is"),
        ("is the gain real or is that just the model being optimistic?", "all figures are modelled"),
        ("how much of the compute is attention at 32k context?", "With a sequence length of 32768 instead of 4096"),
        ("my batch is 256, does that change anything?", "That is so already"),
        ("int8 or bf16 optimizer states?", "adamw with int8 moments keeps for each parameter is not on record"),
        ("int8 or bf16 optimizer states?", "With first_moment=bf16"),
        ("adam in bf16 enough?", "With first_moment=bf16"),
        ("remat full -> minimal, fits?", "With remat=minimal"),
        ("turn off ac, fits?", "With remat=none"),
        ("if we double the seq to 8k, then?", "With a sequence length of 8192 instead of 4096"),
        ("batch 2 per gpu?", "With a global batch of 128 (2 for each of 64 devices)"),
        ("batch 512 or 1024?", "With a global batch of 1024 instead of 256"),
        ("gbs 512, same chips?", "With a global batch of 512 instead of 256"),
        ("smallest batch cut that makes it fit?", "The largest global batch that fits"),
        ("mfu of no. 1 vs today?", "what runs now (data=16 model=4 remat=full): step time"),
        ("days for 1T toks w/ #1", "1,000,000,000,000 tokens take"),
        ("does torch.compile help?", "I cannot say what changes with torch.compile"),
        ("tp comm overlap on?", "I cannot say what changes with overlap of tensor collectives"),
        ("we run FSDP2, is tp 2 worth it?", "model=2 with FSDP over the rest is data=32 model=2"),
        ("comm fraction w/ tp 2?", "data=32 model=2 remat=full: Modelled, not measured"),
        ("is it worth going from 4 to 8 tp?", "model=8 with FSDP over the rest is data=8 model=8"),
        ("can we cut tensor to 2 and leave everything else?", "is data=32 model=2"),
        ("raise FSDP instead of TP", "data 16→64"),
        ("would two pipeline stages help?", "In place of model=4: data=32 stage=2"),
        ("how many chips could I give back?", "On fewer, each with its "),
    ],
)
def test_it_is_answered(start, say, text, said):
    assert said in say(text, start()).text


def test_the_name_of_a_technique_is_english(start, say):
    answer = say("cuda graphs?", start()).text
    assert "what changes with CUDA graphs" in answer
    assert "I read English" not in answer


def test_a_word_of_the_question_before_is_not_taken_for_one_of_this(start, say):
    talk = start("three")
    say("what would remat minimal cost?", talk)
    answer = say("give me the MFU of all three", talk).text
    assert all(f"proposal {rank} (" in answer for rank in (1, 2, 3))
    assert "with remat" not in answer


def test_a_plan_that_was_named_in_part_stays_whole_in_the_next_question(start, say):
    talk = start()
    say("why not pp=2?", talk)
    assert "tokens take" in say("what would 100B tokens cost at 1.2 $ per chip hour?", talk).text


def test_doubt_in_a_proposal_is_answered_of_that_proposal(start, say):
    talk = start()
    second = talk.conversation.proposals[1].plan
    answered = say("why is proposal 2 so uncertain?", talk).text
    assert f"{second}: step time" in answered
    assert "published runs whose steps differ as much lie within" in answered


def test_proposals_that_are_level_are_called_level(start, say):
    answer = say("which one needs the least memory?", start("three")).text
    assert "has the lowest HBM use of the 3" in answer


def test_a_run_that_does_not_fit_is_told_what_makes_it_fit(start, say):
    talk = start()
    say("our batch is 4096", talk)
    say("explain proposal 1", talk)
    assert "what runs now (data=16 model=4 remat=full) does not fit" in say("why does it OOM?", talk).text
    assert "make it fit when changed alone" in say("what is the smallest change that makes it fit?", talk).text
    died = say("it died with RESOURCE_EXHAUSTED", talk)
    assert "Of which plan?" in died.text
    assert not died.evidence


def test_a_plan_that_was_named_in_part_ran_with_data_parallelism_over_the_rest(start, say):
    (fact,) = say("I tried tensor=8 yesterday, it took 9.4 s per step", start()).evidence
    assert str(fact.plan) == "data=8 model=8 remat=full"


def test_a_step_of_another_plan_does_not_make_a_run_fit(start, say):
    talk = start()
    say("our batch is 4096", talk)
    say("proposal 1 measured 90 s", talk)
    assert all(
        one.prediction.memory.total.value <= one.prediction.memory.capacity_bytes for one in talk.conversation.proposals
    )


def test_what_that_begins_a_clause_on_is_no_plan(start, say):
    talk = start()
    say("explain proposal 2", talk)
    assert "what runs now (data=16 model=4 remat=full)" in say("what is the largest batch that fits?", talk).text


@pytest.fixture(scope="module")
def megatron(home):
    """A decoder under Megatron-LM without FSDP, in a pipeline."""
    script = (
        "torchrun --nproc_per_node 8 --nnodes 4 pretrain_gpt.py --num-layers 32 --hidden-size 4096"
        " --ffn-hidden-size 14336 --num-attention-heads 32 --group-query-attention --num-query-groups 8"
        " --seq-length 8192 --max-position-embeddings 8192 --position-embedding-type rope --swiglu"
        " --untie-embeddings-and-output-weights --vocab-size 128256 --use-distributed-optimizer"
        " --tensor-model-parallel-size 4 --pipeline-model-parallel-size 2 --micro-batch-size 1"
        " --global-batch-size 128 --bf16 --recompute-granularity full --recompute-method uniform"
        " --recompute-num-layers 1"
    )
    path = home / "pretrain.sh"
    path.write_text(script)
    store = ExperimentStore()
    store.add(create_experiment("pretrain", Statement(hardware="h100-32"), config=path), replace=True)
    return open_conversation("pretrain", store)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("what if micro batch size 2?", "With microbatches=16"),
        ("what if we double the micro batch size?", "With microbatches=16"),
        ("what if the micro batch size is 1?", "That is so already"),
        ("is the optimizer state sharded?", "- optimizer state: over replica (4, ZeRO stage 1)"),
        ("are the parameters sharded?", "- 4 copies over replica (plain data parallelism) of gradients and parameters"),
        ("do 16 GPUs make sense?", "what runs now (replica=2 model=4 stage=2"),
        ("give me the flags for replica=8 model=4 microbatches=16", "as now: --tensor-model-parallel-size 4"),
        ("what does my pipeline bubble cost?", "pipeline bubble of what runs now"),
        ("what if I had 64 GPUs?", "what runs now (replica=8 model=4 stage=2 microbatches=16 remat=full)"),
        ("can I use a micro batch of 2?", "With microbatches=16"),
        ("what would bf16 moments buy?", "With first_moment=bf16 and second_moment=bf16"),
        ("what if we trained in bf16?", "That is so already"),
        ("can I drop recomputation?", "With remat=none"),
        ("how far are we from the roofline?", "--use-pytorch-profiler"),
        ("would it help to use context parallelism?", "seq 1→"),
        ("our nodes have 8x200Gb InfiniBand", "25.0 GB/s a device between nodes (on record: 50.0 GB/s, as its maker"),
        ("we have 400Gb IB not 200", "of a node, or of one GPU"),
        ("why not TP=2?", "stage=2 kept and plain data parallelism over the rest is replica=8 model=2 stage=2"),
        ("is ZeRO-1 enough here?", "GiB\n- optimizer: 3.14"),
        ("what does offloading the optimizer bring?", "With offload=optimizer"),
        ("what if we only had 2 nodes?", "With 16 chips instead of 32"),
        ("what if we had 4 GPUs?", "takes its place"),
        ("how do I verify that?", "asap verify compiles for TPUs alone"),
        ("do I need pipeline parallelism at all?", "- without it, replica=8 model=4 microbatches="),
        ("halve TP pls", "stage=2 kept and plain data parallelism over the rest is replica=8 model=2 stage=2"),
        ("drop TP to 2", "stage=2 kept and plain data parallelism over the rest is replica=8 model=2 stage=2"),
        ("tp 4 -> 2?", "is replica=8 model=2 stage=2"),
        ("raise DP instead of PP", "replica=8 model=4"),
        ("dp 8?", "is replica=8 model=2 stage=2"),
        ("pp 4 keep tp4", "is replica=2 model=4 stage=4"),
        ("we measured 5200 tok/s/gpu, is that good?", "what is expected of replica=4 model=4"),
        ("tp 2 cp 2", "stage=2 kept and plain data parallelism over the rest is replica=4 seq=2 model=2 stage=2"),
        ("tp1 pp2?", "is replica=16 stage=2"),
        ("tp 2 or 8?", "replica=2 model=8 stage=2"),
        ("gbs 256?", "what runs now (replica=4 model=4 stage=2 microbatches=64 remat=full)"),
        ("our current run OOMs", "what runs now, replica=4 model=4 stage=2"),
    ],
)
def test_megatrons_words_are_understood(megatron, say, text, said):
    answer = say(text, Chat(replace(megatron, session=new_session_name())))
    assert said in answer.text


def test_no_pipeline_means_the_best_plan_without_one(megatron, say):
    answer = say("how much faster with pp=1?", Chat(replace(megatron, session=new_session_name())))
    assert answer.focus is not None
    assert answer.focus.degree("stage") == 1


@pytest.mark.parametrize("text", ["experts over 8 GPUs", "spread the experts over 8", "EP over 2 nodes"])
def test_experts_over_devices_is_the_degree_of_experts(megatron, text):
    study = megatron.analysed_study
    assert with_degrees_written(text, study) == f"{'ep' if 'EP' in text else 'expert'}={16 if 'nodes' in text else 8}"


@pytest.mark.parametrize("text", ["16 experts on 128 GPUs", "the model of 8 chips", "batch over 8 GPUs", "experts: 8"])
def test_other_counts_are_no_degree(megatron, text):
    assert with_degrees_written(text, megatron.analysed_study) == text
