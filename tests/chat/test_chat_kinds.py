"""Kinds of questions: the help shows one of each, and each is read as its kind; the answers that came last."""

import re

import pytest

from asap.chat.answers.by_topic import ANSWERS
from asap.chat.understanding.message import read_message
from asap.evidence.claims import Claim
from asap.experiments import Experiment, ExperimentStore
from asap.plans import Plan
from tests.chat.conftest import LLAMA
from tests.chat.conversations import ask

pytestmark = pytest.mark.slow
NARROW = 80


@pytest.fixture
def megatron(start):
    """The dense decoder under Megatron-LM with its sequence parallelism, on GPUs."""
    ExperimentStore().add(Experiment.model_validate({
        "id": "megatron", "model": LLAMA,
        "workload": {
            "global_batch": 128, "sequence_length": 4096, "precision": "bf16", "optimizer": "adamw",
            "framework": "Megatron-LM", "sequence_parallel": True,
        },
        "hardware": {"name": "h100-16", "chip": "h100", "devices": 16},
        "plan": Plan.parse("replica=4 model=4 microbatches=16 remat=full").model_dump(mode="json"),
    }), replace=True)  # fmt: skip
    return start("megatron")


def test_the_help_shows_a_question_of_each_kind_and_each_is_read_as_its_kind(dense):
    lines = ask(dense, "/help").text.splitlines()
    assert max(map(len, lines)) <= NARROW
    scene = dense.conversation.scene
    for topic, kind in ANSWERS.items():
        if kind.example is not None:
            assert any(kind.example in line for line in lines)
            (question,) = read_message(kind.example, scene).questions
            assert question.topic is topic


def test_a_low_mfu_is_explained_in_shares_that_make_up_the_step(dense):
    said = ask(dense, "why is MFU only 33 %?").text
    mfu = float(re.findall(r"is ([\d.]+) % \(modelled\)", said)[0])
    rest = [int(share) for share in re.findall(r"(\d+) %[,.]", said.splitlines()[1])]
    assert "recomputation" in said
    assert mfu + sum(rest) == pytest.approx(100, abs=4)


def test_the_setting_that_matters_most_is_one_change_and_comes_first(dense):
    rows = ask(dense, "which setting matters most?").text.splitlines()[1:]
    gains = [float(re.findall(r"step time (-?[\d.]+) %", row)[0]) for row in rows]
    assert gains == sorted(gains)
    assert gains[0] < 0
    for row in rows:
        changed = row.removeprefix("- ").partition(":")[0].split(", ")
        assert len(changed) == 1 or (len(changed) == 2 and "remat" not in row)


def test_a_test_is_said_in_steps_minutes_and_chip_hours(dense):
    said = ask(dense, "how long until we know?").text
    step = float(re.findall(r"at ([\d.]+) s a step", said)[0])
    hours = float(re.findall(r"([\d.]+) chip-hours", said)[0])
    assert hours == pytest.approx(25 * step * 64 / 3600, rel=0.01)
    assert "at $2 a chip hour" in ask(dense, "at $2 per chip hour, what does the test cost?").text.lower()


def test_the_largest_microbatch_fits_at_the_same_batch(megatron):
    said = ask(megatron, "what is the biggest micro batch that fits?").text
    size, count = map(int, re.findall(r": (\d+) sequences \((\d+) microbatches", said)[0])
    assert size * count * 4 == 128
    assert "(fits)" in said


def test_the_cheapest_proposal_is_told_in_chip_hours_per_token(dense):
    said = ask(dense, "which proposal is cheapest per token?").text
    costs = [float(cost) for cost in re.findall(r": ([\d.]+) chip-hours for a billion tokens", said)]
    assert len(costs) > 1
    assert costs == sorted(costs)


def test_a_figure_that_was_refused_can_be_corrected(dense):
    assert not ask(dense, "we measured 2.2 s per step").evidence
    (fact,) = ask(dense, "no, I meant 10.2 s").evidence
    assert (fact.claim, fact.value) == (Claim.STEP_TIME, 10.2)
    assert fact.plan == dense.conversation.study.plan


def test_a_negative_time_is_asked_about_and_can_be_corrected(dense):
    first = dense.conversation.order[0]
    answer = ask(dense, "proposal 1 measured -7 s")
    assert not answer.evidence
    assert "above zero" in answer.text
    (fact,) = ask(dense, "I meant 7 s").evidence
    assert (fact.plan, fact.value) == (first, 7)


def test_sequence_parallelism_of_megatron_is_no_context_parallelism(megatron, dense):
    for text in ("what does turning off --sequence-parallel cost in memory?", "is sequence parallelism on?"):
        said = ask(megatron, text).text
        assert said.startswith("Sequence parallelism is on")
        assert "seq=" not in said
    assert "seq=" in ask(dense, "would more sequence parallelism help?").text


def test_a_pasted_log_is_one_measurement(dense):
    log = [f"completed step: {n}, seconds: {10.8 + n % 3 / 100}, TFLOP/s/device: 65, loss: 3.1" for n in range(200)]
    (fact,) = ask(dense, "\n".join(["can you use this?", *log])).evidence
    assert fact.value == pytest.approx(10.81, abs=0.005)
    (fact,) = ask(dense, "\n".join(f"step {n}: step time 10.{n} s" for n in range(5, 10))).evidence
    assert fact.value == 10.7


def test_what_is_too_long_or_in_another_language_is_said(dense):
    assert "only its first" in ask(dense, "lorem ipsum " * 10_000).text
    assert "I read English" in ask(dense, "co spowalnia ten trening i dlaczego?").text
    assert "I read English" not in ask(dense, "is the cat happy with what we have?").text


@pytest.mark.parametrize(
    ("text", "claim", "value"),
    [
        ("we get 1.2k tok/s per chip", Claim.THROUGHPUT, 76800),
        ("our MFU is 40%", Claim.MFU, 0.4),
        ("we measured 0.4 MFU", Claim.MFU, 0.4),
        ("proposal 1 measured 7,5 s", Claim.STEP_TIME, 7.5),
        ("the baseline runs at 10,9 s/step", Claim.STEP_TIME, 10.9),
        ("we see 59.1 TFLOP/s per chip", Claim.MFU, 0.3),
        ("we measured 10.9 s per step, so what now?", Claim.STEP_TIME, 10.9),
    ],
)
def test_a_figure_is_heard_however_it_is_written(dense, text, claim, value):
    (fact,) = ask(dense, text).evidence
    assert fact.claim is claim
    assert fact.value == pytest.approx(value, rel=1e-3)


def test_it_is_the_changed_run_and_no_number_is_dropped(dense):
    ask(dense, "could we drop remat and still fit?")
    said = ask(dense, "we go to 8k context with the same tokens. does it fit?").text
    assert "a global batch of 128 instead of 256, for as many tokens" in said
    assert "remat=full): step time" in said
    assert "stand for" in ask(dense, "would 2 nodes fewer hurt the throughput?").text
