"""What a pipe holds: questions are a turn each, a training log is one measurement."""

from io import BufferedReader, BytesIO

import pytest

from asap.chat.piped import piped_turns

LOG = "Loading the data\n" + "".join(f"completed step: {n}, seconds: 10.{n}, loss: 3.1\n" for n in range(8))
CRASH = "".join(f"2026-01-01 10:00:0{n} ERROR RESOURCE_EXHAUSTED\n" for n in range(6))


def turns(text: str) -> list[str]:
    return list(piped_turns(BufferedReader(BytesIO(text.encode()))))


def test_each_line_is_a_turn():
    assert turns("what is the bottleneck?\n\nwhy not model=8?") == ["what is the bottleneck?", "why not model=8?"]


@pytest.mark.slow
def test_a_log_is_one_measurement_and_says_what_was_read(start, say):
    (turn,) = turns(f"{LOG}saved a checkpoint\nhow far off was your prediction?\n")
    answer = say(turn, start())
    (fact,) = answer.evidence
    assert fact.value == pytest.approx(10.35, abs=0.5)
    assert answer.text.startswith("Read a log: 10.")
    assert "longer than predicted" in answer.text or "less than predicted" in answer.text


@pytest.mark.slow
def test_a_log_without_steps_is_no_measurement(start, say):
    (turn,) = turns(f"{CRASH}Traceback (most recent call last):\n")
    answer = say(turn, start())
    assert "no steady step" in answer.text
    assert not answer.evidence
