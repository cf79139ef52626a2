"""What engineers argue in few words: orders on the list, plans that are out, what is off, goals, links, copies."""

import re

import pytest

from asap.evidence.claims import Claim
from asap.evidence.fact import NO_OFFLOAD
from tests.chat.conversations import ask

pytestmark = pytest.mark.slow
PAPER = "paper-v5p-512"


def constraints(answer):
    return {fact.about for fact in answer.evidence if fact.claim is Claim.CONSTRAINT}


@pytest.mark.parametrize(
    ("text", "about"),
    [
        ("drop everything with interleaving", {"no virtual stages"}),
        ("our jit dies on cp, so kick out whatever uses cp", {"seq"}),
        ("pls remove any plan that offloads", {NO_OFFLOAD}),
        ("2 recomputes, 3 offloads to the host, neither is ok", {NO_OFFLOAD}),
        ("accumulation and offloading, no to both", {"no accumulation", NO_OFFLOAD}),
        ("vpp or offload? we want none of it", set()),
    ],
)
def test_plans_of_a_kind_are_ordered_away(text, about, megatron):
    assert constraints(ask(megatron, text)) >= about


@pytest.mark.parametrize("text", ["ep stays on nvlink of course", "experts clearly must not leave the node"])
def test_emphasis_is_no_doubt_about_a_limit(text, megatron):
    assert constraints(ask(megatron, text)) == {"expert"}


@pytest.mark.parametrize("text", ["interleaving off", "what if vpp is disabled?", "1 with vpp turned off?"])
def test_what_is_off_is_not_turned_on(text, megatron):
    answer = ask(megatron, text)
    assert "With pipeline_repeats=2" not in answer.text
    assert "pipeline_repeats=4" not in answer.text.splitlines()[0]


def test_without_an_axis_that_does_not_run_the_best_other_plan_lacks_it(torchtitan):
    answer = ask(torchtitan, "cp disabled?")
    assert answer.text.startswith("What runs now has no context parallelism.")
    assert answer.focus is not None
    assert answer.focus.degree("seq") == 1


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("resort the list with that", "The order is up to date"),
        ("re-rank please", "The order is up to date"),
        ("flip those two", "Swap what?"),
        ("exchange 1 and 2", "I do not swap proposals on request"),
        ("what moved?", "Nothing, the order is the one that we began with"),
        ("why is 1 on top?", "Proposal 1 is first, ahead of proposal 2"),
        ("is 2 still ahead?", "No: proposal 2 is not first"),
        ("does 1 still lead", "Yes"),
    ],
)
def test_the_order_is_spoken_of_in_a_few_words(text, said, three):
    answer = ask(three, text)
    assert answer.text.startswith(said)
    assert len(answer.text) < 1000
    assert not answer.changed


def test_two_proposals_beside_each_other_begin_with_what_differs(three):
    assert ask(three, "1 vs 2, what else is different?").text.startswith("They differ in ")


def test_a_proposal_that_is_dropped_with_a_limit_is_set_aside_and_the_limit_stands(three):
    dropped = three.conversation.order[1]
    answer = ask(three, "scrap 2, cp over dcn is a nogo")
    assert constraints(answer) == {"seq"}
    assert f"{dropped}, proposal 2 before," in answer.text
    assert str(dropped) not in answer.text.splitlines()[-1]


@pytest.mark.parametrize("goal", ["we need 50% mfu", "has to be under 5 s a step"])
def test_a_change_behind_a_goal_says_if_it_is_reached(goal, dense):
    ask(dense, goal)
    answer = ask(dense, "on v6e?")
    assert re.search(r"the goal of [\d.e+]+ tokens/s is (?:not )?likely reached", answer.text.splitlines()[0])


def test_a_change_without_a_goal_is_a_what_if(dense):
    assert "goal" not in ask(dense, "on v6e?").text


@pytest.mark.parametrize("text", ["ported from the 13b example", "we took the flags from somebody's 70b tutorial"])
def test_where_a_configuration_comes_from_changes_nothing(text, dense):
    answer = ask(dense, text)
    assert answer.text.startswith("Where it was copied from changes no figure")
    assert answer.context is not None
    assert answer.context.change is None


@pytest.mark.parametrize(
    ("text", "said"),
    [("do we touch dcn at all", "No: what runs now keeps every axis inside a slice"), ("is ici used?", "Yes")],
)
def test_whether_a_link_is_used_is_answered_first(text, said, dense):
    assert ask(dense, text).text.startswith(said)


def test_which_axes_go_between_nodes(torchtitan):
    assert ask(torchtitan, "does anything go over infiniband?").text.startswith("Yes: what runs now has FSDP (data=8)")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("max seq with gbs 512", "The longest sequence that fits (now 4096)"),
        ("longest context at bs 1", "A batch of 1 is read as 1 sequence of each data rank"),
        ("biggest batch at 2k", "The largest global batch that fits (now 256)"),
        ("lowest gbs without accumulation", "The smallest global batch"),
    ],
)
def test_the_most_of_one_size_while_another_is_set(text, said, dense):
    assert ask(dense, text).text.startswith(said)


@pytest.mark.parametrize(
    ("text", "change"),
    [
        ("64 chips → 128 chips", "With 128 chips"),
        ("layers 32 -> 48", "With 48 layers"),
        ("256 sequences => 512", "With a global batch of 512"),
        ("4k ctx → 8k", "With a sequence length of 8192"),
    ],
)
def test_behind_an_arrow_stands_what_it_becomes(text, change, dense):
    assert ask(dense, text).text.startswith(change)


def test_dp_is_the_data_parallelism_that_the_run_has(start):
    answer = ask(start(PAPER), "dp32 tp4 cp4 took 36.2 s")
    (fact,) = answer.evidence
    assert fact.plan == start(PAPER).conversation.order[2]
    assert "dp is read as FSDP" in answer.text


def test_dp_beside_fsdp_is_plain_data_parallelism(torchtitan):
    assert "replica=2 data=4" in ask(torchtitan, "dp2 fsdp4?").text


@pytest.mark.parametrize("text", ["prod works fine, tops out at 61 GiB", "it trains ok tho, max 61 GiB"])
def test_a_peak_of_a_run_that_works_is_no_limit(text, megatron):
    answer = ask(megatron, text)
    assert [fact.claim for fact in answer.evidence] == [Claim.HBM_BYTES]


@pytest.mark.parametrize(
    "text", ["cuda graphs on already", "we compile already", "already training with torch.compile"]
)
def test_what_is_in_use_is_part_of_the_run(text, torchtitan):
    assert "is part of what runs now" in ask(torchtitan, text).text


@pytest.mark.parametrize(
    "text", ["are the grads bf16 or fp32", "is the optimizer state in there?", "which dtype are weights held in"]
)
def test_the_precision_of_the_state_is_said(text, megatron):
    assert ask(megatron, text).text.startswith("HBM is predicted with weights in bf16, gradients in fp32")


def test_what_opaque_operations_are_changes_no_figure(start):
    answer = ask(start(PAPER), "those custom calls are our paged kernels")
    assert answer.text.startswith("So the opaque time is paged kernels.")
    assert not answer.evidence


def test_cheaper_weighs_the_chips_that_were_just_spoken_of(dense):
    ask(dense, "what about v5p?")
    assert "chip-hours instead of" in ask(dense, "and which is cheaper?").text


def test_without_it_is_of_the_limit_before_or_asked_back(megatron):
    assert ask(megatron, "without that?").text.startswith("Without what?")
    assert ask(megatron, "no cp for us", "and without it?").text.startswith(("first with the limit", "Nothing:"))


def test_a_proposal_that_is_not_there_is_not_answered_for_another(too_large):
    assert ask(too_large, "does 3 offload").text.startswith("There is no proposal 3.")


@pytest.mark.parametrize("text", ["how much of the step is tp allreduce", "what share does the all-reduce have"])
def test_the_share_of_a_collective_is_said(text, megatron):
    assert re.match(
        r"what runs now \(.*\): all-reduce of model [\d.]+ m?s, [\d.]+ % of the step", ask(megatron, text).text
    )


@pytest.mark.parametrize(
    ("texts", "about"),
    [
        (("the seq cannot change", "gbs neither"), "batch"),
        (("no offload for us", "same for cp"), "seq"),
        (("the batch must stay as it is", "nor the optimizer"), "optimizer"),
    ],
)
def test_a_limit_goes_on_with_another_thing(texts, about, megatron):
    assert constraints(ask(megatron, *texts)) == {about}


@pytest.mark.parametrize("text", ["no further gpus", "h100 only, no more nodes"])
def test_no_more_chips_is_a_limit(text, megatron):
    assert constraints(ask(megatron, text)) == {"hardware"}


def test_each_of_two_things_without_a_verb_is_ruled_out(megatron):
    assert constraints(ask(megatron, "no cp, no recompute")) == {"seq", "no recomputation"}


@pytest.mark.parametrize(
    ("text", "value"),
    [("ours 6.1 s, yours 5.5 s, ok?", 6.1), ("we 6.1s / you 5.5s", 6.1), ("measured 6.1 s, you 5.5", 6.1)],
)
def test_ours_beside_yours_is_a_measurement(text, value, megatron):
    (fact,) = ask(megatron, text).evidence
    assert (fact.claim, fact.value) == (Claim.STEP_TIME, value)


def test_what_a_proposal_took_is_in_seconds(three):
    (fact,) = ask(three, "2 took 9.4").evidence
    assert (fact.plan, fact.value) == (three.conversation.opening[1], 9.4)


@pytest.mark.parametrize("text", ["tp4→2", "model=4 → model=2", "tp 4 => tp 2"])
def test_a_plan_before_an_arrow_is_not_meant(text, dense):
    answer = ask(dense, text)
    assert answer.focus is not None
    assert answer.focus.degree("model") == 2
    assert "model=2" in ask(dense, "mem?").text.splitlines()[0]


def test_there_is_the_run_that_was_supposed(dense):
    ask(dense, "what if 32 chips")
    assert "on 32 chips" in ask(dense, "per chip throughput drops?").text
    assert "with 32 chips" in ask(dense, "and the bottleneck there?").text


def test_a_bare_share_after_mfu_is_a_goal(dense):
    ask(dense, "why is the mfu that low?")
    assert ask(dense, "how far from 60").text.startswith("That is a step that is")


def test_savings_of_a_period_are_in_chip_hours_and_money(dense):
    text = ask(dense, "at $1.2 per chip hour, what do we save monthly?").text
    assert "the tokens of a month on 64 chips" in text
    assert "$1.2 a chip-hour" in text


@pytest.mark.parametrize("text", ["fastest one, i don't care about memory", "just fast, memory doesn't matter"])
def test_what_does_not_count_is_not_compared(text, three):
    assert "HBM use" not in ask(three, text).text.splitlines()[0]


@pytest.mark.parametrize("text", ["does fp8 hurt convergence?", "would int8 change the loss"])
def test_what_a_change_does_to_the_loss_is_not_predicted(text, dense):
    answer = ask(dense, text)
    assert answer.text.startswith("It changes the numerics")
    assert "tokens/s" not in answer.text


def test_vpp_with_its_number_behind_it(megatron):
    assert ask(megatron, "whats vpp4 cost in memory").text.startswith("With pipeline_repeats=4")


@pytest.mark.parametrize("text", ["bf16 grads?", "reduce-scatter in bf16?", "nccl tree?"])
def test_what_cannot_be_varied_is_said(text, megatron):
    assert ask(megatron, text).text.startswith("I cannot say what changes with")


def test_a_digit_after_why_is_a_proposal(three):
    ask(three, "cost of 2 microbatches")
    assert ask(three, "why is 3 even there").focus == three.conversation.order[2]


@pytest.mark.parametrize("text", ["seq8 is for long context", "our slices are 8x16 btw"])
def test_neither_a_degree_nor_a_topology_is_a_size_of_the_run(text, start):
    answer = ask(start(PAPER), text)
    assert not answer.evidence
    assert "chips in 8 slices" not in answer.text


def test_another_criterion_ranks_again(three):
    ask(three, "rank them by risk")
    assert "lowest HBM use" in ask(three, "and by hbm").text.splitlines()[0]
    assert "lowest cost per token" in ask(three, "on cost?").text.splitlines()[0]


@pytest.mark.parametrize("text", ["carve it up by 8", "trim it how"])
def test_it_alone_is_asked_back(text, three):
    ask(three, "explain 1")
    assert ask(three, text).text.startswith(("I do not understand that", "I am not sure what you ask"))


@pytest.mark.parametrize("text", ["is 2 dangerous?", "catch?"])
def test_a_risk_in_few_words(text, three):
    assert "What speaks against it:" in ask(three, text).text


def test_virtual_stages_before_layers_are_no_layers(megatron):
    assert "layers instead of" not in ask(megatron, "do pp2 vpp4 layers divide?").text


@pytest.mark.parametrize("text", ["why 1.2 gib of params", "temporaries so large how"])
def test_why_a_part_of_the_memory_is_so_large(text, dense):
    assert "is modelled from the architecture and the plan" in ask(dense, text).text


def test_a_degree_in_place_of_data_parallelism(dense):
    plan = ask(dense, "cp 16 instead of fsdp").focus
    assert plan is not None
    assert plan.degree("data") == 1


@pytest.mark.parametrize("text", ["how stable is that figure", "how robust is this number?"])
def test_how_much_a_number_may_move(text, dense):
    assert "This is based on" in ask(dense, text).text


@pytest.mark.parametrize("text", ["if 2 crashes?", "what if proposal 2 runs out of memory"])
def test_an_outcome_that_is_supposed_is_of_its_proposal(text, three):
    second = three.conversation.order[1]
    answer = ask(three, text)
    assert answer.text.startswith(f"Assuming that {second} ")
    assert not answer.evidence


@pytest.mark.parametrize("text", ["our a2a is 90 ms in nsys", "the gemms took 2.1 s in the trace"])
def test_a_time_of_a_part_is_no_step_time(text, megatron):
    answer = ask(megatron, text)
    assert not answer.evidence
    assert "proposal 2 …" not in answer.text


def test_a_price_behind_at_is_no_batch(dense):
    ask(dense, "gbs 512?")
    assert "a day, at $1.7 a chip hour" in ask(dense, "cost/day at 1.7").text


def test_activations_and_optimizer_are_both_offloaded(dense):
    assert ask(dense, "offload opt and acts?").text.startswith("With remat=offload and offload=optimizer")


@pytest.mark.parametrize("text", ["is 2 alone using how much", "proposal 2 needs how much"])
def test_how_much_a_proposal_uses_is_its_memory(text, three):
    assert "HBM at its peak" in ask(three, text).text


def test_back_to_a_number_leaves_what_was_supposed(dense):
    assert ask(dense, "what if 32 chips", "back to 64").text.startswith("What was supposed is dropped")


def test_a_figure_near_another_is_not_taken_for_it(start):
    assert "35.4 %" not in ask(start(PAPER), "35.6 was before").text.splitlines()[0]


def test_the_same_recipe_is_asked_in_two_words(dense):
    assert ask(dense, "explain 1", "same lr?").text.startswith("No: sharding")


@pytest.mark.parametrize(
    ("text", "said"),
    [("we're already using cp", "Not on record"), ("tensor parallelism is on", "Yes: tensor parallelism is")],
)
def test_an_axis_in_use_is_set_against_the_record(text, said, dense):
    answer = ask(dense, text)
    assert answer.text.startswith(said)
    assert not answer.evidence


def test_a_proposal_without_its_offloading_keeps_nothing_on_the_host(dense):
    plan = ask(dense, "1 without offloading, still ok?").focus
    assert dense.conversation.order[0].moves_activations
    assert plan is not None
    assert not plan.moves_activations


@pytest.mark.parametrize(
    ("text", "about"), [("80 gig chips can't do that", set()), ("bigger chips are no option", {"hardware"})]
)
def test_what_chips_cannot_do_is_no_limit(text, about, megatron):
    assert constraints(ask(megatron, text)) == about


@pytest.mark.parametrize("text", ["we measured 12.4 s, yours 11.0", "we got 12.4 s, yours said 11"])
def test_yours_beside_a_figure_is_no_proposal(text, dense):
    (fact,) = ask(dense, text).evidence
    assert (fact.plan, fact.value) == (dense.conversation.study.plan, 12.4)


def test_dp_with_a_small_degree_is_no_version_of_fsdp(torchtitan):
    assert "data=2" in ask(torchtitan, "hm dp2?").text


def test_a_plan_is_meant_by_its_step_time(megatron):
    first = megatron.conversation.proposals[0].prediction
    assert first.step_time is not None
    text = ask(megatron, f"what is {first.step_time.value:.2f} in tok/s/gpu").text
    assert text.startswith(f"proposal 1 ({first.plan})")
