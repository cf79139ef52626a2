"""Every fault of a service, in every protocol that is spoken: a typed end, within the time that the settings state."""

import asyncio
import time
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from pathlib import Path

import pytest

from asap.agents.llm.budget import LimitError, UsageMeter
from asap.agents.settings import Settings
from asap.core.errors import ServiceError
from tests.agents.services import ANTHROPIC as ANTHROPIC_MODEL
from tests.agents.services import GEMINI as GEMINI_MODEL
from tests.agents.services import MODELS, PLANTED, ask, fails
from tests.agents.services import OLLAMA as OLLAMA_MODEL
from tests.agents.services import OPENAI as OPENAI_MODEL
from tests.language_models.faults import FAULTS, NOT_REPEATED
from tests.language_models.protocols import ANTHROPIC, GEMINI, OLLAMA, OPENAI
from tests.language_models.scripts import failure
from tests.language_models.server import ModelServer, Reply, Say
from tests.language_models.streams import CUT, MIXED, WORDS, streamed

pytestmark = pytest.mark.process

PATIENT = "[agents.retries]\ntimeout_s = 60\nanswer_s = 60\nattempts = 2\nfirst_delay_s = 0.01\n"
HURRIED = PATIENT.replace("timeout_s = 60", "timeout_s = 0.5").replace("answer_s = 60", "answer_s = 1.0")
EVENT = "text/event-stream"


@pytest.fixture(autouse=True)
def place(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    for name, value in PLANTED.items():
        monkeypatch.setenv(name, value)
    Path("asap.toml").write_text(PATIENT)


@pytest.fixture(params=MODELS)
def model(request):
    return request.param


@pytest.mark.parametrize("fault", FAULTS)
def test_each_fault_has_a_typed_end(serving, model, stream, fault):
    Path("asap.toml").write_text(HURRIED)
    server = serving(lambda question: FAULTS[fault])
    fails(model, stream)
    assert len(server.questions) <= (1 if fault in NOT_REPEATED else 2)


def test_an_answer_in_pieces_is_whole(serving, model):
    serving(lambda question: streamed(_spoken(model), lambda whole: whole))
    assert ask(model, True) == ["".join(WORDS)]


@pytest.mark.parametrize("how", [{}, {"cut": True}, {"reset": True}], ids=["closed", "announced", "reset"])
@pytest.mark.parametrize("change", CUT)
def test_half_an_answer_is_none(serving, model, change, how):
    serving(lambda question: streamed(_spoken(model), CUT[change], **how))
    fails(model, True)


@pytest.mark.parametrize("change", MIXED)
def test_pieces_that_are_mixed_up_have_a_typed_end(serving, model, change):
    serving(lambda question: streamed(_spoken(model), MIXED[change]))
    (outcome,) = ask(model, True)
    assert isinstance(outcome, ServiceError) or (outcome and "\ud800" not in str(outcome)), outcome


@pytest.mark.parametrize("asked", ["0.1", "seconds", "date"])
def test_a_delay_that_the_service_asks_for_is_kept(serving, model, asked):
    soon = format_datetime(datetime.now(UTC) + timedelta(seconds=1), usegmt=True)
    replies = [failure(429, **{"Retry-After": soon if asked == "date" else asked}), Say("at last")]
    serving(lambda question: replies.pop(0))
    assert ask(model, False) == ["at last"]


def test_a_delay_that_is_too_long_is_said(serving, model, stream):
    serving(lambda question: failure(429, **{"Retry-After": "3600"}))
    assert "it asks to wait 3,600 s" in fails(model, stream).message


def test_no_redirect_carries_a_question_to_another_host(serving, model, stream):
    with ModelServer(lambda question: Say("gladly")) as elsewhere:
        target = {"Location": f"{elsewhere.url}/v1beta/models/mine:generateContent?key=x"}
        server = serving(lambda question: Reply(307, headers=target))
        assert "redirect" in fails(model, stream).message
        assert (len(server.questions), elsewhere.questions) == (1, [])


def test_a_certificate_that_nobody_vouches_for_ends_it(serving, model, stream, self_signed):
    server = serving(lambda question: Say("gladly"), certificate=self_signed)
    fails(model, stream)
    assert server.questions == []


def test_a_stream_of_small_pieces_has_an_end(serving, model):
    Path("asap.toml").write_text(HURRIED)
    protocol = _spoken(model)
    pieces = b"".join(protocol.pieces(Say("and so on ")))
    if protocol is OPENAI:
        pieces = streamed(protocol, lambda whole: whole[:1]).body
    serving(lambda question: Reply(body=pieces, drip_s=0.0005, kind=protocol.kind))
    ask(model, True)


@pytest.mark.parametrize("fault", ["a reset in the middle", "an endless answer", "an array", "a byte now and then"])
def test_what_was_not_counted_is_not_asked_again_under_a_limit_of_tokens(serving, model, fault, monkeypatch):
    server = serving(lambda question: FAULTS[fault])
    if fault == "a byte now and then":  # it has no end but that of time: an hour passes once the question is there
        monkeypatch.setattr(asyncio.BaseEventLoop, "time", lambda _: time.monotonic() + 3600 * len(server.questions))
    meter = UsageMeter(model, Settings(max_tokens=1))
    ask(model, False, meter)
    assert meter.usage.calls == len(server.questions) == 1


def test_refusals_cost_calls_and_no_tokens(serving, model):
    Path("asap.toml").write_text(PATIENT.replace("attempts = 2", "attempts = 9"))
    server = serving(lambda question: FAULTS["429"])
    meter = UsageMeter(model, Settings(max_calls=3, max_tokens=1))
    (outcome,) = ask(model, False, meter)
    assert isinstance(outcome, LimitError)
    assert (meter.usage.calls, meter.usage.tokens, len(server.questions)) == (3, 0, 3)


def _spoken(model):
    return {GEMINI_MODEL: GEMINI, OPENAI_MODEL: OPENAI, ANTHROPIC_MODEL: ANTHROPIC, OLLAMA_MODEL: OLLAMA}[model]
