"""What engineers ask next: a setting on top of a plan, chips for a rate, how a bottleneck shows itself."""

import re

import pytest

pytestmark = pytest.mark.slow


def ask(chat, text):
    answer = chat.turn(text, lambda piece: None)
    assert answer is not None
    return answer.text


@pytest.mark.parametrize("follow_up", ["and with no remat?", "and without recomputation?", "plus no remat"])
def test_a_setting_after_a_plan_goes_on_top_of_it(follow_up, dense):
    ask(dense, "what if tensor was 8?")
    said = ask(dense, follow_up)
    assert said.startswith("With remat=none, data=8 model=8")


@pytest.mark.parametrize(
    "follow_up", ["and drop the remat on top?", "and turn off recompute as well?", "with remat=none"]
)
def test_verbs_of_a_setting_go_on_top_of_the_plan_too(follow_up, dense):
    ask(dense, "what if tensor was 8?")
    assert "data=8 model=8 remat=none" in ask(dense, follow_up)


def test_each_change_that_goes_on_comes_on_top_of_those_before(dense):
    ask(dense, "what about doubling TP?")
    ask(dense, "and with no remat?")
    said = ask(dense, "and with int8?")
    assert said.startswith("With precision int8 instead of bf16 and remat=none:")
    assert "- data=8 model=8 remat=none: step time" in said
    assert "times as long as it does without that" in said
    said = ask(dense, "plus a batch of 512")
    assert "a global batch of 512 instead of 256 and precision int8 instead of bf16 and remat=none" in said
    assert "- data=4 model=8 stage=2 remat=none: step time" in ask(dense, "and pp=2?")


@pytest.mark.parametrize("follow_up", ["and with 32 chips?", "same with 32 chips", "and on v5e-32?"])
@pytest.mark.parametrize("before", ["we could get 128 v5e chips. how does the step change?", "what if 128 chips?"])
def test_chips_after_other_chips_hold(before, follow_up, dense):
    ask(dense, before)
    assert ask(dense, follow_up).startswith("With 32 chips instead of 64")


def test_a_plan_of_a_direction_is_gone_on_with(dense):
    found = re.findall(r"\w+=\d+ model=8", ask(dense, "more tensor parallelism?"))
    assert f"{found[0]} remat=none" in ask(dense, "and with no remat?")


def test_what_is_asked_instead_is_not_put_on_top(dense):
    ask(dense, "batch 512?")
    assert "batch" not in ask(dense, "and what about int8?").splitlines()[0]


def test_a_setting_that_does_not_follow_on_is_of_what_runs(dense):
    ask(dense, "what if tensor was 8?")
    assert "model=8" not in ask(dense, "can we switch off remat in the current run?")


@pytest.mark.parametrize("said", ["tensor was 8", "tp were 8", "our tensor parallelism is 8", "the tp becomes eight"])
def test_a_degree_that_is_supposed_is_a_degree(said, dense):
    assert "data=8 model=8" in ask(dense, f"what if {said}?")


def test_chips_for_a_rate_are_halved_or_doubled_until_it_is_reached(dense):
    rate = float(re.findall(r"([\d.]+) tokens/s,", ask(dense, "how many tokens per second?"))[0])
    more = ask(dense, f"how many chips for {3 * rate / 1000:.0f}k tok/s?")
    chips = [int(count) for count in re.findall(r": (\d+) chips, ", more)]
    reached = [float(found) for found in re.findall(r"([\d.]+) tokens/s, MFU", more)]
    assert len(chips) == 2
    assert min(chips) > 64
    assert all(found >= 3 * rate * 0.99 for found in reached)
    (fewer, *_) = re.findall(r": (\d+) chips, ", ask(dense, f"how few chips give {rate / 8000:.1f}k tokens/s?"))
    assert int(fewer) < 64


def test_what_a_rate_takes_is_answered_in_chips_at_both_batches(dense):
    said = ask(dense, "what would it take to hit 1.5M tokens per second?")
    assert said.startswith("1500000 tokens/s, on the 64 chips of now halved or doubled")
    assert "batch that grows with the chips (4 sequences a chip, as now)" in said
    for rate, low, does in re.findall(r"([\d.]+) tokens/s, MFU.*interval, ([\d.]+) tokens/s, (.*) it", said):
        assert float(low) < float(rate) >= 1.5e6
        assert (does == "still reaches") == (float(low) >= 1.5e6)
    assert ask(dense, "smallest cluster that does 1.5M tok/s").splitlines()[1:] == said.splitlines()[1:]


def test_chips_that_are_named_are_held_against_the_rate(dense):
    said = ask(dense, "can 128 chips give us 9M tok/s?")
    assert ": 128 chips, " in said
    assert said.count("that is short of it") == 2
    assert "short of it" not in ask(dense, "would 128 chips be enough for 100k tok/s?")


def test_chips_for_a_rate_need_the_architecture(start):
    said = ask(start("paper-v5p-512"), "what would it take to hit 1.5M tokens per second?")
    assert "follows from the model's architecture" in said


def test_a_factor_of_throughput_is_a_target_of_the_proposals(dense):
    assert "100.0 % more throughput" in ask(dense, "what would it take to double our throughput?")


@pytest.mark.parametrize(
    ("asked", "told"),
    [
        ("what if HBM bandwidth was the problem, how would I see it", "Bound by HBM bandwidth"),
        ("how would I tell if we were network bound?", "Bound by communication"),
        ("how can I recognise an input-bound run?", "Bound by input"),
        ("what would it look like if we were launch bound?", "Bound by the host"),
        ("how do I know whether it's compute bound?", "Bound by compute"),
        ("what are the signs of being compute bound?", "Bound by compute"),
        ("how can you tell it's not launch overhead?", "Bound by the host"),
        ("what would I look for in the trace if the data pipeline was starving us?", "Bound by input"),
    ],
)
def test_how_a_bottleneck_shows_itself_is_told_before_what_this_run_shows(asked, told, dense):
    said = ask(dense, asked)
    assert said.startswith(told)
    assert "This run:" in said


def test_what_the_bottleneck_is_asks_for_no_symptoms(dense):
    assert "This run:" not in ask(dense, "is the network the bottleneck?")


@pytest.mark.parametrize(("follow_up", "degree"), [("and at 16?", 16), ("or 2", 2), ("how about 8-way", 8)])
def test_a_lone_number_after_a_degree_is_another_degree(follow_up, degree, dense):
    ask(dense, "why not tp=32?")
    assert f"model={degree}" in ask(dense, follow_up).splitlines()[0]


def test_a_factor_after_a_factor_is_of_what_runs(dense):
    ask(dense, "what if we halve the batch?")
    assert "a global batch of 1024 instead of 256" in ask(dense, "or 4 times?")
    assert "a global batch of 512 instead of 256" in ask(dense, "and half of that")


@pytest.mark.parametrize("follow_up", ["under the recommended plan?", "and with your best one"])
def test_the_best_plan_is_the_first_proposal(follow_up, dense):
    ask(dense, "how many days do 300B tokens take?")
    said = ask(dense, follow_up)
    assert said.startswith("proposal 1 (")
    assert "300,000,000,000 tokens take" in said


def test_a_figure_is_asked_of_all_plans_that_were_compared(three):
    ask(three, "compare 2 and 3")
    said = ask(three, "tokens/s?")
    assert "proposal 2 (" in said
    assert "proposal 3 (" in said


@pytest.mark.parametrize(
    ("which", "rank"), [("the first of these", 2), ("the latter", 3), ("the second of the two", 3)]
)
def test_one_of_those_is_counted_among_the_plans_spoken_of(which, rank, three):
    ask(three, "compare proposals 2 and 3")
    assert f"proposal {rank} (" in ask(three, f"how much memory does {which} need?")


def test_what_fits_unchanged_goes_on_with_its_chips(too_large):
    said = ask(too_large, "on how many chips would this config fit as it is now?")
    assert "What runs now fits on 256 chips" in said
    assert "on 256 chips" in ask(too_large, "mfu for that?")


def test_settings_are_of_the_plan_that_was_spoken_of(dense):
    ask(dense, "how much room does proposal 2 leave?")
    plan = str(dense.conversation.focus)
    assert plan in ask(dense, "can we use that room for keeping more activations?")


def test_a_network_is_described_over_two_turns(megatron):
    assert "does not say of what" in ask(megatron, "the fabric is 100 gig")
    assert "With 25.0 GB/s a device between nodes" in ask(megatron, "16 of those ports a node")


@pytest.mark.parametrize(
    ("text", "rate"),
    [
        ("what if the nodes had 8 NDR links each over infiniband", "50.0 GB/s"),
        ("between nodes there are only 4x HDR", "12.5 GB/s"),
        ("ethernet of 200 gbps per gpu", "25.0 GB/s"),
        ("we run on two 100GbE nics per node", "3.12 GB/s"),
    ],
)
def test_a_network_is_read_in_bits(text, rate, megatron):
    assert f"With {rate} a device between nodes" in ask(megatron, text)
