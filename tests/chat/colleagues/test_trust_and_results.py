"""Results beside what was predicted, gains that are doubted, degrees that look odd, checkpoints of the old mesh."""

import pytest

from asap.evidence.claims import Claim


def test_a_result_begins_with_its_number(dense, say):
    plan = dense.conversation.order[1]
    (fact,) = say("well and 2 gave 7.3 s", dense).evidence
    assert (fact.plan, fact.value) == (plan, 7.3)


@pytest.mark.parametrize("text", ["1 doesn't fit, died at step 2", "tried 1, OOM on host 2"])
def test_the_number_of_a_step_or_a_node_is_no_proposal(dense, say, text):
    first = dense.conversation.order[0]
    assert [fact.plan for fact in say(text, dense).evidence] == [first]


@pytest.mark.parametrize(
    "text", ["1 took 6.9 s, expected 6.1", "ran 1: 6.9 s vs the 6.1 s you predicted", "1 measured 6.9 s (you said 6.1)"]
)
def test_what_was_predicted_beside_a_result_is_no_result(dense, say, text):
    (fact,) = say(text, dense).evidence
    assert (fact.claim, fact.value, fact.plan) == (Claim.STEP_TIME, 6.9, dense.conversation.order[0])


@pytest.mark.parametrize("text", ["1 looks too good to be true", "1 is fishy", "1 cannot be right"])
def test_a_gain_that_is_doubted_is_traced_to_its_basis(dense, say, text):
    said = say(text, dense)
    assert said.topic == "sure"
    assert "This is based on:" in said.text
    assert not said.evidence


def test_a_quoted_gain_that_is_doubted_is_that_of_its_proposal(three, say):
    relative = three.conversation.proposals[0].prediction.relative_step_time
    said = say(f"{abs(relative.value - 1) * 100:.0f}% just like that, really?", three)
    assert said.focus == three.conversation.order[0]


def test_a_degree_of_a_proposal_that_looks_odd(three, say):
    now = three.conversation.study.plan
    plan = next(one for one in three.conversation.order if one.degree("data") not in (1, now.degree("data")))
    said = say(f"what's the point of fsdp{plan.degree('data')}", three)
    assert said.text.startswith("That is of proposal")
    assert said.focus == plan


def test_a_degree_that_no_proposal_has_is_weighed_by_itself(dense, say):
    assert not say("why not cp8", dense).text.startswith("That is of proposal")


def test_a_checkpoint_under_another_mesh(torchtitan, say):
    plan = next(one for one in torchtitan.conversation.order if one.ici != torchtitan.conversation.study.plan.ici)
    number = torchtitan.conversation.order.index(plan) + 1
    said = say(f"can we resume our checkpoint with {number}", torchtitan)
    assert "sharded anew as they are loaded" in said.text
    assert said.focus == plan


def test_how_long_a_checkpoint_takes_is_another_question(dense, say):
    assert "split otherwise" not in say("loading the checkpoint takes 40 s when we restart", dense).text


def test_an_unwilling_verb_rules_the_technique_out(dense, say):
    (fact,) = say("id rather not offload", dense).evidence
    assert fact.claim is Claim.CONSTRAINT


def test_which_one_after_a_result_is_of_the_run_with_it(dense, say):
    say("what if the batch is 512", dense)
    say("1 ran out of memory", dense)
    assert "global batch" not in say("which one is it now", dense).text


def test_a_part_of_the_memory_that_is_quoted(dense, say):
    from asap.evidence.anchor import modelled_now

    now = modelled_now(dense.conversation.study)
    assert now is not None
    assert now.memory is not None
    part = max(now.memory.parts, key=lambda one: one.size_bytes)
    said = say(f"{part.size_bytes / 2**30:.1f} GiB of {part.name}, huh", dense).text
    assert part.name in said
    assert str(dense.conversation.study.plan) in said


def test_two_kinds_of_parallelism_by_a_sign(three, say):
    assert say("tell my boss why fsdp > tp", three).topic == "compare"


def test_the_cheapest_thing_is_a_choice(three, say):
    assert say("gimme the cheapest thing that fits", three).topic == "rank by"
