"""Facts and limits as they are typed in haste: without a unit, a verb or a subject."""

import pytest

from asap.core.units import GIB
from asap.evidence.claims import Claim
from tests.chat.conversations import ask

pytestmark = pytest.mark.slow


@pytest.mark.parametrize(
    ("text", "claim", "value"),
    [
        ("step 11.3", Claim.STEP_TIME, 11.3),
        ("now step time: 11.3", Claim.STEP_TIME, 11.3),
        ("it takes 11.3/step", Claim.STEP_TIME, 11.3),
        ("hbm is 9 of 16", Claim.HBM_BYTES, 9 * GIB),
        ("mem at 12.5/16", Claim.HBM_BYTES, 12.5 * GIB),
        ("memory peaks at 12 of 16", Claim.HBM_BYTES, 12 * GIB),
        ("mfu 31", Claim.MFU, 0.31),
    ],
)
def test_a_figure_without_a_unit_is_of_what_runs_now(text, claim, value, dense):
    (fact,) = ask(dense, text).evidence
    assert (fact.claim, fact.plan) == (claim, dense.conversation.study.plan)
    assert fact.value == pytest.approx(value)


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("20 steps took 226 s", 11.3),
        ("we ran 10 steps in about 113 s", 11.3),
        ("10 steps took 11.3 s each", 11.3),
    ],
)
def test_what_several_steps_took_together_is_shared(text, seconds, dense):
    (fact,) = ask(dense, text).evidence
    assert (fact.claim, fact.value) == (Claim.STEP_TIME, pytest.approx(seconds))


@pytest.mark.parametrize("text", ["step 3200", "why is mfu only 31?", "what if hbm is 9 of 16", "tp 2 of 4"])
def test_what_is_no_such_figure_is_not_recorded(text, dense):
    assert not ask(dense, text).evidence


def test_hbm_that_may_be_bytes_or_a_share_is_asked_about(dense):
    answer = ask(dense, "hbm at 66")
    assert not answer.evidence
    assert "66 GiB or 66 %" in answer.text


@pytest.mark.parametrize("text", ["our nodes are 4x200G", "we run on 4 x 200Gb"])
def test_links_of_a_node_are_a_network_and_no_chips(text, torchtitan):
    assert "GB/s a device between nodes" in ask(torchtitan, text).text


def test_memory_of_gpus_is_no_network(torchtitan):
    assert "between nodes" not in ask(torchtitan, "we have 8x80GB").text


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("no accum pls", "no gradient accumulation"),
        ("grad accumulation isn't supported in our fork", "no gradient accumulation"),
        ("vpp isn't supported w/ our custom layers", "no virtual pipeline stages"),
        ("hsdp doesnt work in our fork, only plain fsdp", "no replica axis"),
        ("no remat please", "nothing is recomputed"),
        ("id rather not touch the batch", "the batch stays as it is"),
        ("we dont want to fiddle with the seq length", "the sequence stays as it is"),
        ("i won't use offloading", "nothing is kept in host memory"),
        ("not keen to go above tp 8", "model is at most 8"),
        ("cp is a no for us", "no seq axis"),
        ("we dont do interleaving", "no virtual pipeline stages"),
        ("no way im changing gbs", "the batch stays as it is"),
        ("keep mbs at 1", "a microbatch has 1 sequence of each data rank"),
        ("mbs 2 is max", "a microbatch has at most 2 sequences of each data rank"),
    ],
)
def test_what_cannot_be_used_is_a_limit(text, said, dense):
    (fact,) = ask(dense, text).evidence
    assert said in str(fact)
    assert not any(fact.forbids(plan) for plan in dense.conversation.order)


def test_a_limit_on_the_microbatch_counts_its_sequences(megatron):
    (fact,) = ask(megatron, "mbs 2 is max").evidence
    plan = megatron.conversation.study.plan
    assert fact.forbids(plan.model_copy(update={"microbatches": 8}))
    assert not fact.forbids(plan.model_copy(update={"microbatches": 16}))


def test_a_limit_beside_another_one_is_read_as_well(dense):
    answer = ask(dense, "tp must stay 4, no offload")
    assert [str(fact) for fact in answer.evidence] == [
        "constraint: model=4 stays",
        "constraint: nothing is kept in host memory",
    ]


def test_a_technique_that_is_refused_is_not_tried(megatron):
    text = ask(megatron, "no vpp").text
    assert "pipeline_repeats=2" not in text
    assert "microbatches=32" not in ask(megatron, "without grad accum").text


@pytest.mark.parametrize(
    "text",
    ["i don't like pp", "that won't change the batch", "we do not run pp much", "i dont want pp to be the bottleneck"],
)
def test_a_dislike_or_a_description_is_no_limit(text, dense):
    assert not ask(dense, text).evidence


@pytest.mark.parametrize("text", ["why not tp8 no pp", "no pp, just tp 8?", "tp8 without pipeline parallelism?"])
def test_a_plan_lacks_the_axis_that_it_is_to_lack(text, dense, megatron):
    megatron.turn("we run replica=2 model=4 stage=2", lambda piece: None)
    answer = ask(megatron, text)
    assert answer.focus is not None
    assert (answer.focus.degree("model"), answer.focus.degree("stage")) == (8, 1)
