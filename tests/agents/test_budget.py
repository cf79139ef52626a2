"""Limits of tokens and cost hold whatever the service reports, and the true cause of a failure is said."""

import asyncio
import os
import socket
import subprocess
import sys

import pytest
from google.adk.models import BaseLlm
from google.adk.models.llm_request import LlmRequest
from google.adk.models.llm_response import LlmResponse
from google.genai import types

from asap.agents.llm.budget import CHARACTERS_OF_TOKEN, LimitError, UsageMeter
from asap.agents.llm.client import MOST_CALLS_IN_ANSWER, RetryingModel
from asap.agents.settings import Price, Retries, Settings
from asap.core.errors import ServiceError

MODEL = "openai/local"
PRICES = {MODEL: Price(input=1.0, output=10.0)}
QUESTION = "Why is this step slow? " * 200
NOW = Retries(timeout_s=0.05, attempts=3, first_delay_s=0.001)


class Service(BaseLlm):
    """Answers with what it is given, each time."""

    parts: list[types.Part]
    reports: tuple[int | None, int | None] | None = None
    waits_s: float = 0.0
    asked: int = 0

    async def generate_content_async(self, llm_request, stream=False):
        self.asked += 1
        await asyncio.sleep(self.waits_s)
        used = self.reports and types.GenerateContentResponseUsageMetadata(
            prompt_token_count=self.reports[0], candidates_token_count=self.reports[1]
        )
        yield LlmResponse(content=types.Content(role="model", parts=self.parts), usage_metadata=used or None)


def asked(service, settings, times):
    """What came of asking so often, and the usage."""
    meter = UsageMeter(MODEL, settings)
    model = RetryingModel(model=MODEL, inner=service, retries=settings.retries, meter=meter)

    async def ask():
        for _ in range(times):
            async for _ in model.generate_content_async(LlmRequest(contents=[types.UserContent(QUESTION)])):
                pass

    try:
        asyncio.run(ask())
    except ServiceError as error:
        return error, meter.usage
    return None, meter.usage


@pytest.mark.parametrize(
    "reports",
    [None, (0, 0), (-(10**6), -(10**6)), (None, None), (1, 1), (10**12, 10**12)],
    ids=["missing", "zero", "negative", "empty", "tiny", "absurd"],
)
@pytest.mark.parametrize("limit", [{"max_cost": 0.01}, {"max_tokens": 5_000}], ids=["cost", "tokens"])
def test_usage_that_cannot_be_right_is_estimated_and_stops_at_the_limit(reports, limit):
    service = Service(model=MODEL, parts=[types.Part(text="It waits. " * 100)], reports=reports)
    error, usage = asked(service, Settings(prices=PRICES, **limit), 60)
    assert isinstance(error, LimitError)
    assert 1 < service.asked < 10
    assert usage.uncounted_calls == usage.calls == service.asked
    assert usage.input_tokens >= service.asked * len(QUESTION) // CHARACTERS_OF_TOKEN
    assert usage.cost < 0.02


def test_usage_that_can_be_right_counts_as_reported():
    service = Service(model=MODEL, parts=[types.Part(text="It waits.")], reports=(1_200, 7))
    error, usage = asked(service, Settings(prices=PRICES), 2)
    assert error is None
    assert (usage.input_tokens, usage.output_tokens, usage.uncounted_calls) == (2_400, 14, 0)


def test_tool_calls_of_an_answer_and_of_a_run_are_capped():
    call = types.Part(function_call=types.FunctionCall(name="predict", args={}))
    error, _ = asked(Service(model=MODEL, parts=[call] * (MOST_CALLS_IN_ANSWER + 1)), Settings(), 1)
    assert "33 tool calls in one answer" in str(error)
    error, usage = asked(Service(model=MODEL, parts=[call] * MOST_CALLS_IN_ANSWER), Settings(max_calls=8), 8)
    assert isinstance(error, LimitError)
    assert "more than 80 tools" in str(error)
    assert usage.calls == 3


def test_a_timeout_is_retried_and_called_a_timeout():
    service = Service(model=MODEL, parts=[types.Part(text="late")], waits_s=1.0)
    error, _ = asked(service, Settings(prices=PRICES, max_cost=1.0, retries=NOW), 1)
    assert service.asked == 3
    assert "no answer within 50.0 ms" in str(error)
    service.asked = 0
    error, _ = asked(service, Settings(max_tokens=1, retries=NOW), 1)
    assert service.asked == 1
    assert isinstance(error, LimitError)
    assert "no answer within 50.0 ms" in str(error)
    assert "--max-tokens" in str(error)


def test_half_a_surrogate_pair_of_a_model_is_replaced():
    service = Service(model=MODEL, parts=[types.Part(text="so \ud800 slow")])
    model = RetryingModel(model=MODEL, inner=service, retries=NOW)

    async def answer():
        return [each async for each in model.generate_content_async(LlmRequest())]

    (response,) = asyncio.run(answer())
    assert response.content.parts[0].text == "so ? slow"


SCRIPT = """
from asap.agents.llm.usage import price_of
from asap.agents.settings import Settings
print(price_of("gemini-2.5-flash", Settings())[1])
"""


@pytest.mark.process
def test_prices_are_read_without_the_network():
    with socket.create_server(("127.0.0.1", 0)) as proxy:
        address = f"http://127.0.0.1:{proxy.getsockname()[1]}"
        kept = {name: value for name, value in os.environ.items() if not name.startswith("LITELLM_")}
        environment = kept | {"HTTPS_PROXY": address, "HTTP_PROXY": address, "NO_PROXY": ""}
        command = [sys.executable, "-c", SCRIPT]
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True, timeout=120)
        proxy.settimeout(0)
        with pytest.raises(BlockingIOError):
            proxy.accept()
    assert done.stdout.strip() == "LiteLLM's price list"
