"""Any language model as ASAP calls it: metered, with a timeout, retried after transient failures.

Whatever goes wrong in the end is one :class:`~asap.core.errors.ServiceError`. All models answer a schema through the
tool that google-adk gives them for it, so that what does not fit goes back to the model with the reason.
"""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import aclosing

from google.adk.models import BaseLlm, LlmCapabilities
from google.adk.models.llm_request import LlmRequest
from google.adk.models.llm_response import LlmResponse
from google.genai.types import FinishReason
from tenacity import AsyncRetrying, retry_if_exception, stop_after_attempt, wait_exponential

from asap.agents.llm.budget import ModelCall, UsageMeter
from asap.agents.llm.procedure import ANSWER
from asap.agents.settings import Retries
from asap.core.errors import AsapError, ServiceError
from asap.core.secrets import redacted
from asap.core.text import plain

LONGEST_REASON = 300
TRANSIENT_STATUS = {408, 429, *range(500, 600)}
"""HTTP status codes after which a request is retried."""

COMPLETE = {FinishReason.STOP, FinishReason.OTHER, FinishReason.FINISH_REASON_UNSPECIFIED}
"""Finish reasons of a complete answer. Servers of the OpenAI protocol have further reasons, mapped to OTHER."""


EMPTY_ANSWER = "an empty answer"


class StoppedError(Exception):
    """The service ended an answer early: a safety filter, the output limit, a malformed tool call, an empty answer."""

    @property
    def is_transient(self) -> bool:
        """Whether a retry may help."""
        return str(self).startswith((FinishReason.MALFORMED_FUNCTION_CALL.value, EMPTY_ANSWER))


class RetryingModel(BaseLlm):
    """A model with timeout, retries and a usage meter.

    Args:
        model: its name.
        inner: the model itself.
        retries: timeout and retries of one request.
        meter: counts what it uses and enforces the limits.
    """

    inner: BaseLlm
    retries: Retries
    meter: UsageMeter | None = None

    @property
    def capabilities(self) -> LlmCapabilities:
        """Schemas are answered through ``set_model_response``."""
        return LlmCapabilities(output_schema_and_tools=False)

    async def generate_content_async(
        self, llm_request: LlmRequest, stream: bool = False
    ) -> AsyncGenerator[LlmResponse, None]:
        """Ask; a transient failure before the first response is retried, with delays that double.

        Raises:
            LimitError: a limit of the meter was reached.
            ServiceError: the model failed.
        """
        retrying = AsyncRetrying(
            stop=stop_after_attempt(self.retries.attempts),
            wait=wait_exponential(multiplier=self.retries.first_delay_s),
            retry=retry_if_exception(_is_transient),
            reraise=True,
        )
        try:
            first, rest = await retrying(self._begin, llm_request, stream)
            async with aclosing(rest):
                if first is not None:
                    yield first
                async for response in rest:
                    yield response
        except AsapError:
            raise
        except Exception as error:
            raise ServiceError(f"the model failed: {_reason(error)}", where=self.model) from error

    async def _begin(
        self, request: LlmRequest, stream: bool
    ) -> tuple[LlmResponse | None, AsyncGenerator[LlmResponse, None]]:
        """The first response, and the generator of those that follow."""
        responses = self._attempt(request, stream)
        return await anext(responses, None), responses

    async def _attempt(self, request: LlmRequest, stream: bool) -> AsyncGenerator[LlmResponse, None]:
        call = await self.meter.admit() if self.meter else ModelCall()
        answered = False
        try:
            async with aclosing(self.inner.generate_content_async(request, stream)) as responses:
                while (response := await self._next(responses)) is not None:
                    call.count(response.usage_metadata)
                    _require_complete(response)
                    answered = answered or bool(response.content and response.content.parts)
                    if not response.partial:
                        call.close()
                    yield response
            if not answered and ANSWER in request.tools_dict:
                raise StoppedError(EMPTY_ANSWER)
        except Exception as error:
            if _is_refusal(error):
                call.count_refused()
            raise
        finally:
            call.close()

    async def _next(self, responses: AsyncGenerator[LlmResponse, None]) -> LlmResponse | None:
        try:
            async with asyncio.timeout(self.retries.timeout_s):
                return await anext(responses, None)
        except TimeoutError as error:
            raise TimeoutError(f"no answer within {self.retries.timeout_s:g} s") from error


def _require_complete(response: LlmResponse) -> None:
    if response.error_code:
        raise StoppedError(f"{response.error_code} {response.error_message or ''}".strip())
    if response.finish_reason is not None and response.finish_reason not in COMPLETE:
        raise StoppedError(response.finish_reason.value)


def _is_transient(error: BaseException) -> bool:
    if isinstance(error, StoppedError):
        return error.is_transient
    return isinstance(error, TimeoutError | ConnectionError) or _status(error) in TRANSIENT_STATUS


def _status(error: BaseException) -> int | None:
    """The HTTP status of an error, as google-genai or LiteLLM reports it."""
    found = getattr(error, "status_code", None) or getattr(error, "code", None)
    return found if isinstance(found, int) else None


def _is_refusal(error: Exception) -> bool:
    """Whether the service answered with an error; LiteLLM gives lost connections a status as well."""
    lost = any(kind.__name__ == "APIConnectionError" for kind in type(error).__mro__)
    return _status(error) is not None and not lost


def _reason(error: Exception) -> str:
    reason = f"stopped with {error}" if isinstance(error, StoppedError) else f"{type(error).__name__}: {error}"
    return plain(redacted(reason), LONGEST_REASON)
