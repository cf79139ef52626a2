"""What an engineer rules out, and figures that are set beside those of the engine."""

import pytest

from asap.evidence.claims import Claim
from asap.plans import Plan
from tests.chat.conversations import ask

pytestmark = pytest.mark.slow


@pytest.mark.parametrize(
    ("text", "constraint"),
    [
        ("don't touch tp", "model=4 stays"),
        ("our dp is hard-coded", "data=16 stays"),
        ("tp=4 is baked into the data loader", "model=4 stays"),
        ("tensor parallelism at most 8", "model is at most 8"),
        ("fsdp cannot go below 8", "data is at least 8"),
        ("no more than 2-way context parallelism here", "seq is at most 2"),
        ("min tp is 2 for us", "model is at least 2"),
        ("leave remat alone", "the remat stays as it is"),
        ("yes but keep tp>=2 pls, our loader needs it", "model is at least 2"),
        ("tp <= 8 for us", "model is at most 8"),
        ("at least tp4 please", "model is at least 4"),
        ("we need tp 4 to stay", "model=4 stays"),
        ("we're stuck with tp=4", "model=4 stays"),
        ("nope, no pp", "no stage axis"),
        ("can't do more than 9 GiB", "HBM is at most 9.00 GiB a chip"),
        ("keep it under 10GB", "HBM is at most 9.31 GiB a chip"),
        ("our memory budget is 12 GiB", "HBM is at most 12.0 GiB a chip"),
        ("we can't offload the optimizer, host ram is small", "nothing is kept in host memory"),
        ("no offloading, the host is too slow", "nothing is kept in host memory"),
        ("no cp since our kernel has no ring", "no seq axis"),
        ("pp is out as well", "no stage axis"),
        ("cp nope, the kernel lacks it", "no seq axis"),
        ("hsdp no thanks", "no replica axis"),
        ("tp4 stays too", "model=4 stays"),
        ("tp16 is a non-starter", "model=16 cannot be used"),
        ("no quant allowed on this one", "the precision stays as it is"),
        ("no plain data parallelism please", "no replica axis"),
    ],
)
def test_a_limit_is_recorded_as_it_is_meant(text, constraint, dense):
    assert [str(fact) for fact in ask(dense, text).evidence] == [f"constraint: {constraint}"]


@pytest.mark.parametrize("text", ["tp has to stay inside a host", "tensor parallelism must fit in one node"])
def test_a_limit_of_a_node_is_of_its_gpus(text, megatron):
    assert [str(fact) for fact in ask(megatron, text).evidence] == ["constraint: model is at most 8"]


@pytest.mark.parametrize(
    "text", ["no tp over the ib", "tp off nvlink is a nogo", "keep tp inside the node", "tp must never cross nodes"]
)
def test_an_axis_stays_inside_a_node(text, megatron):
    assert [str(fact) for fact in ask(megatron, text).evidence] == ["constraint: model stays inside a node"]
    assert all(plan.degree("model") <= 8 for plan in megatron.conversation.order)


def test_what_takes_more_than_a_node_with_the_axes_inside_of_it_is_ruled_out(megatron):
    said = ask(megatron, "no cp across hosts").evidence[0]
    assert not said.forbids(Plan.parse("replica=2 model=4 seq=2")), "four by two are a node"
    assert said.forbids(Plan.parse("model=4 seq=4"))


def test_trust_in_a_figure_is_no_limit(dense):
    assert not ask(dense, "i dont trust your tp numbers").evidence


def test_a_proposal_that_is_dropped_beside_a_limit_is_not_forgotten(three):
    dropped = three.conversation.order[1]
    answer = ask(three, "drop 2, and tp stays at 4")
    assert [str(fact) for fact in answer.evidence] == ["constraint: model=4 stays"]
    assert f"{dropped}, proposal 2 before," in answer.text


def test_a_list_that_a_limit_leads_to_is_not_said_twice(three):
    answer = ask(three, "no cp please, it breaks. what else")
    assert answer.text.count("\n1. ") == 1, answer.text


@pytest.mark.parametrize(
    ("text", "constraints"),
    [
        ("can't change the sequence or the batch", {"the sequence stays as it is", "the batch stays as it is"}),
        ("tp is fixed, and fsdp must be at least 8", {"model=4 stays", "data is at least 8"}),
        (
            "we cant touch the batch and grad accum has to stay",
            {"the batch stays as it is", "the microbatches stay as they are"},
        ),
        ("cp and tp are locked in", {"seq=1 stays", "model=4 stays"}),
    ],
)
def test_every_limit_of_a_line_is_recorded(text, constraints, dense):
    assert {str(fact).removeprefix("constraint: ") for fact in ask(dense, text).evidence} == constraints


@pytest.mark.parametrize(
    "text",
    ["tp gives 40 mfu at most", "the model has at least 32 layers", "our context is at most 4096", "is tp at most 4?"],
)
def test_what_is_no_limit_of_an_axis_is_not_recorded(text, dense):
    assert not ask(dense, text).evidence


def test_a_limit_takes_plans_beyond_it_out(dense):
    ask(dense, "tp must not go below 4")
    candidates = dense.conversation.revised.ranked.candidates
    assert candidates
    assert all(candidate.plan.degree("model") >= 4 for candidate in candidates)


@pytest.mark.parametrize(
    ("text", "claim", "value"),
    [
        ("11 s? no way, we clocked 9.6", Claim.STEP_TIME, 9.6),
        ("you expect 10.7 s and we actually see 9.9", Claim.STEP_TIME, 9.9),
        ("your 45 % MFU looks off, we got 39", Claim.MFU, 0.39),
        ("our step is actually 9.3", Claim.STEP_TIME, 9.3),
        ("step time crept up to 11.4s since the upgrade", Claim.STEP_TIME, 11.4),
        ("xprof says we peak at 9.5 GiB of HBM", Claim.HBM_BYTES, 9.5 * 2**30),
    ],
)
def test_a_figure_beside_that_of_the_engine_is_a_measurement(text, claim, value, dense):
    facts = ask(dense, text).evidence
    assert [(fact.claim, fact.plan) for fact in facts] == [(claim, dense.conversation.analysed_study.plan)]
    assert facts[0].value == pytest.approx(value)


def test_a_batch_in_tokens_is_one_of_sequences(dense):
    assert "a global batch of 512 instead of 256" in ask(dense, "what about 2M tokens per batch?").text
    (fact,) = ask(dense, "our global batch size is 0.5M tokens").evidence
    assert (fact.claim, fact.value) == (Claim.BATCH, 128)


def test_settings_that_are_asked_about_are_no_facts(megatron):
    said = ask(megatron, "tp 2 mbs 4, would it fit")
    assert not said.evidence
    assert "model=2" in said.text


def test_an_outcome_is_recorded_beside_what_is_asked_of_it(dense):
    (fact,) = ask(dense, "proposal 2 ran out of memory, does it matter").evidence
    assert fact.claim is Claim.OUT_OF_MEMORY


def test_an_outcome_and_a_figure_of_two_plans_are_both_recorded(three):
    facts = ask(three, "#1 took 7.2 s, #3 crashed").evidence
    assert [fact.claim for fact in facts] == [Claim.STEP_TIME, Claim.FAILED]


def test_a_number_of_microbatches_is_not_their_size(megatron):
    assert "microbatches=8" in ask(megatron, "what if the microbatch count was 8?").text


def test_an_outcome_of_another_plan_takes_the_place_of_the_one_that_was_said(dense):
    first, second = dense.conversation.opening[:2]
    ask(dense, "proposal 2 ran out of memory")
    answer = ask(dense, "oops, I meant that proposal 1 ran out of memory")
    assert [fact.plan for fact in answer.retracted] == [second]
    assert [fact.plan for fact in dense.conversation.evidence] == [first]


@pytest.mark.parametrize(
    "text", ["did that kill any?", "which ones got knocked out", "who survives?", "is anything ruled out"]
)
def test_what_a_limit_rules_out_is_told_plan_by_plan(text, megatron):
    opening = megatron.conversation.opening
    megatron.turn("tp has to be 2 at most", lambda piece: None)
    answer = ask(megatron, text)
    lines = answer.text.splitlines()
    for place, plan in enumerate(opening, 1):
        out = "ruled out by model is at most 2" if plan.degree("model") > 2 else "not ruled out"
        assert any(line.startswith(f"- proposal {place}, {plan}: {out}") for line in lines)


def test_a_proposal_is_out_by_a_limit_that_was_asked_for(dense):
    second = dense.conversation.order[1]
    axis = next(axis for axis in ("model", "seq", "data") if second.degree(axis) > 1)
    ask(dense, f"anything with no {axis} axis?")
    answer = ask(dense, "so 2 is out")
    assert "ruled out by" in answer.text
    assert "not on record" in answer.text


def test_nothing_is_ruled_out_before_a_limit_is_stated(dense):
    assert "Nothing is ruled out" in ask(dense, "did anything get eliminated?").text


@pytest.mark.parametrize(
    ("text", "stated"),
    [
        ("keep tp8, no pp for us", ["model=8 stays", "no stage axis"]),
        ("no offloading, leave the batch", ["nothing is kept in host memory", "the batch stays as it is"]),
        ("tp at most 8 and gbs unchanged", ["model is at most 8", "the batch stays as it is"]),
        ("sequence fixed please", ["the sequence stays as it is"]),
        ("cpu memory must not be touched", ["nothing is kept in host memory"]),
    ],
)
def test_every_limit_of_a_line_is_kept_with_or_without_a_verb(text, stated, dense):
    assert [str(fact) for fact in ask(dense, text).evidence] == [f"constraint: {one}" for one in stated]
