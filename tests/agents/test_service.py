"""One model behind its service, with real clients: unary and streamed, each failure typed, limits held side by side."""

import json
import time
from pathlib import Path

import pytest

from asap.agents.llm.budget import LimitError, UsageMeter
from asap.agents.settings import Price, Settings
from tests.agents.services import GEMINI, OPENAI, PLANTED, ask, fails
from tests.language_models.scripts import failure, gemini_end
from tests.language_models.server import Question, Reply, Say

pytestmark = pytest.mark.process

SETTINGS = "[agents.retries]\ntimeout_s = 60\nattempts = 3\nfirst_delay_s = 0.01\n"
EVENT = "text/event-stream"
BUSY = [408, 429, 500, 503]
FINAL = [400, 401, 403, 404]


@pytest.fixture(autouse=True)
def place(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    for name, value in PLANTED.items():
        monkeypatch.setenv(name, value)
    Path("asap.toml").write_text(SETTINGS)


@pytest.fixture(params=[GEMINI, OPENAI])
def model(request):
    return request.param


def test_it_answers(serving, model, stream):
    serving(lambda question: Say("well"))
    meter = UsageMeter(model, Settings())
    assert ask(model, stream, meter) == ["well"]
    assert (meter.usage.calls, meter.usage.input_tokens, meter.usage.output_tokens) == (1, 1000, 100)


@pytest.mark.parametrize("status", BUSY)
def test_what_may_pass_is_asked_again_with_growing_delays(serving, model, stream, status):
    Path("asap.toml").write_text(SETTINGS.replace("0.01", "0.1"))
    at: list[float] = []

    def script(question: Question):
        at.append(time.monotonic())
        return failure(status) if len(at) < 3 else Say("at last")

    serving(script)
    assert ask(model, stream) == ["at last"]
    assert at[1] - at[0] >= 0.1
    assert at[2] - at[1] >= 0.2


@pytest.mark.parametrize("status", FINAL)
def test_what_will_not_pass_is_not_asked_again(serving, model, stream, status):
    server = serving(lambda question: failure(status))
    fails(model, stream)
    assert len(server.questions) == 1


@pytest.mark.parametrize("reason", ["SAFETY", "MAX_TOKENS", "RECITATION", "MALFORMED_FUNCTION_CALL"])
def test_an_answer_that_gemini_stops_is_no_answer(serving, stream, reason):
    end = gemini_end(reason, content={"role": "model", "parts": [{"text": "half of"}]}).body
    body = b"data: " + json.dumps(end).encode() + b"\n\n"
    serving(lambda question: Reply(body=body, kind=EVENT) if stream else Reply(body=end))
    assert reason in fails(GEMINI, stream).message


@pytest.mark.parametrize(("finish", "reason"), [("length", "MAX_TOKENS"), ("content_filter", "SAFETY")])
def test_an_answer_that_an_openai_server_stops_is_no_answer(serving, finish, reason):
    choice = {"index": 0, "finish_reason": finish, "message": {"role": "assistant", "content": "half of"}}
    body = {"id": "1", "object": "chat.completion", "created": 1, "model": "local", "choices": [choice]}
    serving(lambda question: Reply(body=body))
    assert reason in fails(OPENAI, False).message


@pytest.mark.parametrize(
    "limit", [{"max_calls": 1}, {"max_tokens": 1000}, {"max_cost": 0.001}], ids=["calls", "tokens", "cost"]
)
def test_calls_side_by_side_overshoot_by_one_call_at_most(serving, model, stream, limit):
    server = serving(lambda question: Say("well"))
    settings = Settings.model_validate(limit | {"prices": {model: Price(input=1.0, output=10.0)}})
    outcomes = ask(model, stream, UsageMeter(model, settings), times=5)
    assert outcomes.count("well") == 1
    assert sum(isinstance(outcome, LimitError) for outcome in outcomes) == 4
    assert len(server.questions) == 1
