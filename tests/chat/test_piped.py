"""What a pipe holds: questions are a turn each, a training log is one measurement."""

from io import BufferedReader, BytesIO

import pytest

from asap.chat.piped import piped_turns
from asap.evidence.claims import Claim

LOG = "Loading the data\n" + "".join(f"completed step: {n}, seconds: 10.{n}, loss: 3.1\n" for n in range(8))
CRASH = "".join(f"2026-01-01 10:00:0{n} ERROR {{what}}\n" for n in range(6))


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
    (turn,) = turns(f"{CRASH.format(what='nan in loss')}Traceback (most recent call last):\n")
    answer = say(turn, start())
    assert "no steady step" in answer.text
    assert not answer.evidence


@pytest.mark.slow
@pytest.mark.parametrize(
    "line",
    [
        "XlaRuntimeError: RESOURCE_EXHAUSTED: Out of memory while trying to allocate 20.1G",
        "[rank3]: torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB.",
    ],
)
def test_a_log_that_ran_out_of_memory_is_evidence_on_what_runs_now(start, say, line):
    chat = start()
    (turn,) = turns(f"Loading\n{line}\nwhat now?\n")
    answer = say(turn, chat)
    (fact,) = answer.evidence
    assert fact.claim is Claim.OUT_OF_MEMORY
    assert fact.plan == chat.conversation.study.plan
    assert line[:40] in answer.text


@pytest.mark.slow
@pytest.mark.parametrize("line", ["RESOURCE_EXHAUSTED: Quota exceeded for storage", "oom-killer: CUDA out of memory"])
def test_another_quota_is_no_evidence(start, say, line):
    (turn,) = turns(CRASH.format(what=line))
    assert not say(turn, start()).evidence
