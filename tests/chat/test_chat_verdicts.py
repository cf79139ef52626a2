"""What engineers want decided: whether it pays, whether it fits, whether a fact changed anything, who said what."""

import pytest

from asap.chat.answers.phrasing import lead
from asap.sharding_memory import new_session_name
from tests.chat.conversations import ask

pytestmark = pytest.mark.slow


# Verdicts


@pytest.mark.parametrize(
    "text", ["is float8 worth it?", "should we train in fp8?", "would fp8 pay off on these chips?"]
)
def test_a_precision_without_faster_arithmetic_is_no_gain_and_said_first(text, dense):
    said = ask(dense, text).text
    assert said.startswith("TPU v5e has no faster fp8 arithmetic")
    assert "It changes the numerics" in said


@pytest.mark.parametrize("text", ["should we offload the optimizer?", "does offloading the moments buy us anything"])
def test_a_setting_is_judged_before_it_is_described(text, dense):
    assert ask(dense, text).text.startswith("In time it ")


@pytest.mark.parametrize("text", ["tp 4 is a waste, no?", "isn't TP4 overkill?", "is tp 4 necessary"])
def test_a_degree_of_now_is_weighed_against_none_of_it(text, dense):
    said = ask(dense, text).text
    assert said.startswith("Tensor parallelism (model=4) is used in what runs now")
    assert "- without it, data=64" in said


def test_what_a_precision_does_to_the_loss_is_asked_of_it(dense):
    ask(dense, "what about int8?")
    assert "matrix products in int8" in ask(dense, "will that affect convergence?").text


def test_a_proposal_is_not_taken_for_the_precision_before(dense):
    ask(dense, "what about int8?")
    assert "int8" not in ask(dense, "does proposal 1 change the numerics?").text


# Doubts, quotes, facts that change nothing


@pytest.mark.parametrize("text", ["it trained without issues last week", "that config ran fine before"])
def test_a_run_without_a_figure_is_asked_about(text, too_large):
    answer = ask(too_large, text)
    assert not answer.evidence
    assert "does not fit" in answer.text
    assert "number of chips did it have?" in answer.text


def test_a_figure_that_was_given_is_not_denied(too_large):
    size = ask(too_large, "what fills the HBM?").text.split("activations: ")[1].split(" GiB")[0]
    said = ask(too_large, f"you told me activations are {size} GiB. where did you get that?").text
    assert "No, I did not" not in said
    assert "what remat=full keeps of 32 layers for 32 sequences at once" in said
    assert ask(too_large, "you told me activations are 977 GiB, how so?").text.startswith("No, I did not")


def test_a_measurement_is_set_beside_the_prediction(dense):
    ask(dense, "the baseline takes 9 s")
    for text in ("that's longer than you predicted", "against your estimate?"):
        assert "measured 9.00 s" in ask(dense, text).text


def test_whether_facts_changed_the_order_is_yes_or_no(dense):
    assert ask(dense, "is the ranking still the same?").text.startswith("No, the order is the one that we began with")
    first = dense.conversation.order[0]
    ask(dense, "proposal 1 ran out of memory")
    said = ask(dense, "did that change your recommendation?").text
    assert said.startswith("Yes, it is another one")
    assert f"at the beginning {first} was" in said


def test_the_order_of_the_beginning_survives_a_restart(dense):
    first = dense.conversation.order[0]
    ask(dense, "proposal 1 ran out of memory")
    again = dense.conversation.afresh(new_session_name())
    again.add_evidence(dense.conversation.evidence)
    assert again.opening[0] == first


def test_a_share_of_what_is_not_kept_is_no_riddle(dense):
    answer = ask(dense, "we lose 12 % of our samples in the filter")
    assert not answer.evidence
    assert "I keep no record of that" in answer.text


def test_what_is_nearly_understood_is_asked_back(dense):
    text = ask(dense, "moe routing trouble").text
    assert "Do you mean" in text
    assert '"what is our current plan?"' in text


# Checking beforehand


@pytest.mark.parametrize(
    "text",
    [
        "how can I tell if this will OOM?",
        "is there some way to find out if it fits first?",
        "how to verify whether it fits",
    ],
)
def test_how_to_check_whether_it_fits_names_the_compiler_and_supposes_nothing(text, dense):
    answer = ask(dense, text)
    assert answer.text.startswith('Compile it, without a TPU: asap verify dense --plan "data=16 model=4 remat=full"')
    assert not answer.evidence
    assert ask(dense, "and how long will that take?").text.startswith("Compiling: minutes")


def test_gpus_have_no_compiler_to_ask(megatron):
    assert ask(megatron, "how do I know whether this fits?").text.startswith("Run three steps of it")


def test_what_is_asked_indirectly_is_no_fact(dense):
    assert not ask(dense, "tell me if proposal 1 runs out of memory").evidence


@pytest.mark.parametrize(
    "text",
    [
        "what makes it fit without a smaller batch?",
        "how do I get it to fit, batch has to stay",
        "cheapest fix for the OOM at the same batch",
    ],
)
def test_what_makes_it_fit_leaves_alone_what_is_to_stay(text, too_large):
    assert (
        "Those that" in (said := ask(too_large, text).text)
        or "when changed alone" in said
        or "The proposals do" in said
    )


@pytest.mark.parametrize("text", ["smallest pod this fits on as it is", "how small a slice would hold this run?"])
def test_the_smallest_slice_is_a_number_of_chips(text, too_large):
    assert "A plan fits on " in ask(too_large, text).text


def test_the_network_is_recognised_by_its_signs(megatron):
    assert ask(megatron, "how would i know if it's infiniband").text.startswith("Bound by communication")


def test_a_collective_that_is_not_there_is_said_so(dense):
    assert ask(dense, "how long does the a2a take?").text.startswith("There is no all-to-all in data=16 model=4")


def test_a_lead_beyond_the_whole_is_no_percentage():
    assert lead(0.031) == "by 3.1 % of risk-adjusted gain"
    assert lead(4.8) == "by far"
