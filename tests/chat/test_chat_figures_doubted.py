"""Figures of the analysis, of the hardware and of monitors that are repeated, doubted or set against a measurement."""

import pytest

from asap.chat.chat import Chat
from tests.chat.conversations import ask

pytestmark = pytest.mark.slow


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("43 % opaque sounds bad", "opaque, not inefficient"),
        ("is 44% opaque a worry", "opaque, not inefficient"),
        ("36 s per iteration, thats ages on 512 chips", "best bet to shorten it"),
        ("+-61 % tells me nothing", "One run settles it"),
        ("51% wont convince anybody", "One run settles it"),
    ],
)
def test_a_figure_that_is_shown_is_explained_where_it_is_repeated(text, said, start):
    answer = ask(start("paper-v5p-512"), text)
    assert said in answer.text
    assert not answer.evidence


@pytest.mark.parametrize("text", ["79% hbm bound, is it bad", "79 % bound by hbm sounds terrible"])
def test_a_share_of_time_is_no_hbm_in_use(text, start):
    answer = ask(start("paper-v6e-16"), text)
    assert not answer.evidence
    assert "79.4 % of the listed time goes to operations bound by HBM bandwidth" in answer.text


def test_a_chip_that_has_something_is_no_number_of_chips(megatron):
    assert "chips instead of" not in ask(megatron, "40 gigs?? our gpu has 80").text


@pytest.mark.parametrize("text", ["loss is at 43 %", "our dataloader takes 43 % of the cpu"])
def test_a_figure_of_something_else_is_none_of_the_analysis(text, start):
    assert "opaque, not inefficient" not in ask(start("paper-v5p-512"), text).text


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("nvlink does 900 GB/s tho", "900 GB/s agrees with it: that is of one GPU in both directions together"),
        ("isnt nvlink 450GB/s", "450 GB/s is that figure"),
        ("the ib gives us 400 GB/s", "of a node of 8 in one direction"),
        ("which hbm bandwidth did you take", "Predictions take 3.35 TB/s for HBM bandwidth"),
        ("peak is 1979 tflops", "in dense fp8 or in dense int8 or in bf16 with sparsity, which training does not use"),
        ("hbm does 3350 GB/s", "3.35 TB/s is that figure"),
        ("how come you assume 50 GB/s", "of one GPU in one direction"),
        ("busbw is 210 GB/s a node in nccl-tests", "261 GB/s of a node"),
    ],
)
def test_a_figure_of_the_hardware_is_set_beside_the_one_that_is_taken(text, said, megatron):
    answer = ask(megatron, text)
    assert said in answer.text
    assert not answer.evidence


def test_a_link_of_a_tpu_has_directions_and_neighbours(dense):
    assert "of the 4 links of a chip in both directions together" in ask(dense, "ici is 400 GB/s per chip").text


@pytest.mark.parametrize(
    "text", ["gpu util sits at 25%", "nvidia-smi util is 98 %", "sm occupancy is 30%", "cards pull 300W"]
)
def test_what_a_monitor_shows_is_no_mfu(text, megatron):
    answer = ask(megatron, text)
    assert not answer.evidence
    assert "It is not recorded" in answer.text
    assert "the step waits most for" in answer.text


@pytest.mark.parametrize(
    "text",
    [
        "step is {own} s but my log has {seen}",
        "you say {own} s, wandb shows {seen} s",
        "{own} s? we get {seen}",
        "we got {seen} s but you said {own} s",
        "step is {seen} s where you expected {own}",
        "report has {own} s, profiler says {seen} s",
    ],
)
def test_of_two_figures_the_one_of_the_engine_is_quoted(text, megatron):
    step = f"{modelled(megatron):.2f}"
    seen = f"{modelled(megatron) * 1.2:.2f}"
    answer = ask(megatron, text.format(own=step, seen=seen))
    assert [str(fact.value) for fact in answer.evidence] == [str(float(seen))]


def test_of_two_figures_neither_of_the_engine_the_one_that_was_read_off_a_run_is_taken(megatron):
    answer = ask(megatron, "step is 31.5 s but we measured 30.1 s")
    assert [fact.value for fact in answer.evidence] == [30.1]
    assert "Not recorded" in answer.text


def test_the_name_of_a_figure_is_that_of_the_one_it_is_set_against(megatron):
    (fact,) = ask(megatron, "mfu is 33% but the dashboard reports 29.5%").evidence
    assert str(fact).endswith("measured MFU 29.5 %")


def modelled(chat: Chat) -> float:
    from asap.evidence.anchor import modelled_now

    now = modelled_now(chat.conversation.study)
    assert now is not None
    assert now.step_time is not None
    return now.step_time.value
