"""One question to a language model behind its service."""

import asyncio
from importlib.util import find_spec

import pytest
from google.adk.models.llm_request import LlmRequest
from google.genai import types

from asap.agents.llm.budget import UsageMeter
from asap.agents.llm.models import language_model
from asap.agents.settings import read_settings
from asap.core.errors import ServiceError
from tests.cases import kept

GEMINI, OPENAI, ANTHROPIC, OLLAMA = "gemini-2.5-flash", "openai/local", "anthropic/local", "ollama_chat/local"
"""One model for each protocol."""

LITELLM = pytest.mark.skipif(find_spec("litellm") is None, reason="extra litellm")
MODELS = [GEMINI, *(pytest.param(name, marks=LITELLM) for name in (OPENAI, ANTHROPIC, OLLAMA))]
PLANTED = kept(__file__)["PLANTED"]


def ask(model: str, stream: bool, meter: UsageMeter | None = None, times: int = 1) -> list[str | BaseException]:
    """What the model says, so many times at once: its whole words, or how it failed."""
    service = language_model(read_settings(model=model), meter)

    async def one() -> str:
        request = LlmRequest(model=model, contents=[types.UserContent("hello")], config=types.GenerateContentConfig())
        words = [response async for response in service.generate_content_async(request, stream)]
        whole = [response.content for response in words if response.content and not response.partial]
        return "".join(part.text or "" for content in whole for part in content.parts or ())

    async def all_() -> list[str | BaseException]:
        return await asyncio.gather(*(one() for _ in range(times)), return_exceptions=True)

    return asyncio.run(all_())


def fails(model: str, stream: bool) -> ServiceError:
    (outcome,) = ask(model, stream)
    assert isinstance(outcome, ServiceError), outcome
    assert "planted" not in str(outcome)
    return outcome
