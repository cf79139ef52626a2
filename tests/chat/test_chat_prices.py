"""Money in a chat: whose price it is, and what a step then costs."""

import re

import pytest

from tests.chat.conversations import ask

pytestmark = pytest.mark.slow


def costs(text: str) -> list[float]:
    """What a step costs, by each line that says it."""
    return [float(cost) for cost in re.findall(r"a step costs \$([\d.]*\d)", text)]


@pytest.mark.parametrize(
    "text",
    [
        "a tpu is 3.50 an hour, price of a step?",
        "we pay 3.5 bucks per chip-hour, so what is one step",
        "at 350 cents per device hour how much is a step",
        "chips go for $3.5/chip/h: cost per step?",
        "the whole slice costs 224 dollars an hour, what is that per step",
    ],
)
def test_a_price_is_of_a_chip_hour_and_no_number_of_chips(text, dense):
    said = ask(dense, text)
    assert said.topic == "throughput"
    assert "on 64 chips" in said.text
    now = float(re.findall(r"step time ([\d.]+) s", said.text)[0])
    assert costs(said.text) == [pytest.approx(now * 64 * 3.5 / 3600, rel=0.01)]


def test_a_step_of_a_run_without_an_architecture_has_a_price(start):
    said = ask(start("paper-v5p-512"), "TPUs are 2.40 an hour apiece, price of one step?").text
    assert costs(said) == [pytest.approx(35.7 * 512 * 2.4 / 3600, rel=0.01)]


def test_two_chips_with_their_prices_are_set_beside_each_other(dense):
    said = ask(dense, "v5e at $1.1 an hour, v5p at 4.1, which costs less per token?").text
    assert "64 v5e chips at $1.1 a chip hour: a step costs" in said
    assert "64 v5p chips at $4.1 a chip hour: a step costs" in said
    assert said.count("a billion tokens $") == 4


def test_the_price_of_another_chip_is_of_a_run_on_it(dense):
    said = ask(dense, "what is the bill on v6e at 2.5 a chip hour?").text
    assert "64 v6e chips" in said
    assert "at $2.5 a chip hour" in said


def test_a_price_of_a_node_is_of_its_gpus(megatron):
    said = ask(megatron, "we are charged 28 usd an hour per host, what does a step cost").text
    now = float(re.findall(r"step time ([\d.]+) s", said)[0])
    assert costs(said) == [pytest.approx(now * 16 * 3.5 / 3600, rel=0.01)]


def test_a_price_of_a_node_of_unknown_size_is_not_worked_with(dense):
    said = ask(dense, "28 usd an hour per host: cost of a step?").text
    assert "28 usd an hour is no price of a chip hour" in said
    assert not costs(said)


def test_a_budget_is_no_price_of_a_chip_hour(dense):
    said = ask(dense, "we have $20k to spend, how many tokens is that?").text
    assert "$20k is no price of a chip hour" in said
    assert not costs(said)


def test_what_is_counted_is_whole(dense):
    assert "2 chips" not in ask(dense, "chips: 1.7 or so").text


def test_only_the_run_as_it_is_is_told_what_a_proposal_saves(too_large):
    ask(too_large, "how many chips does it take to fit unchanged?")
    said = ask(too_large, "and what would that be at $2 a chip hour?").text
    assert "on 256 chips" in said
    assert "less (modelled)" not in said
