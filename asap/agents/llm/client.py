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
from tenacity import AsyncRetrying, RetryCallState, retry_if_exception, stop_after_attempt, wait_exponential

from asap.agents.llm.budget import LimitError, ModelCall, UsageMeter
from asap.agents.llm.failures import EMPTY_ANSWER, StoppedError, is_refusal, is_transient, retry_after_s, service_error
from asap.agents.llm.roles import ANSWER
from asap.agents.settings import Retries
from asap.core.errors import AsapError
from asap.core.text import whole
from asap.core.units import format_seconds

COMPLETE = {FinishReason.STOP, FinishReason.OTHER, FinishReason.FINISH_REASON_UNSPECIFIED}
"""Finish reasons of a complete answer. Servers of the OpenAI protocol have further reasons, mapped to OTHER."""


MOST_CHARACTERS = 200_000
"""Of one answer: five times the longest that a model is asked for."""
MOST_CALLS_IN_ANSWER = 32
"""Tool calls; the built-in model makes four at once."""


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

        A service that asks for a longer delay (``Retry-After``) gets it, up to the timeout of a request.

        Raises:
            LimitError: a limit of the meter was reached.
            ServiceError: the model failed.
        """
        retrying = AsyncRetrying(
            stop=stop_after_attempt(self.retries.attempts),
            wait=self._delay,
            retry=retry_if_exception(lambda error: is_transient(error, self.retries.timeout_s)),
            reraise=True,
        )
        failed: list[Exception] = []
        try:
            first, rest = await retrying(self._begin, llm_request, stream, failed)
            async with aclosing(rest):
                if first is not None:
                    yield first
                async for response in rest:
                    yield response
        except LimitError as error:
            if failed:  # the limit only kept it from being tried again
                cause = service_error(failed[0], self.model).message
                raise LimitError(f"{cause}; then {error.message}", where=error.where, hint=error.hint) from failed[0]
            raise
        except AsapError:
            raise
        except Exception as error:
            raise service_error(error, self.model) from error

    def _delay(self, state: RetryCallState) -> float:
        error = state.outcome.exception() if state.outcome else None
        asked = retry_after_s(error) if error else 0.0
        return max(asked, wait_exponential(multiplier=self.retries.first_delay_s)(state))

    async def _begin(
        self, request: LlmRequest, stream: bool, failed: list[Exception]
    ) -> tuple[LlmResponse | None, AsyncGenerator[LlmResponse, None]]:
        """The first response, and the generator of those that follow; why it failed is added to ``failed``."""
        responses = self._attempt(request, stream)
        try:
            return await anext(responses, None), responses
        except LimitError:
            raise
        except Exception as error:
            failed.append(error)
            raise

    async def _attempt(self, request: LlmRequest, stream: bool) -> AsyncGenerator[LlmResponse, None]:
        call = await self.meter.admit(_characters(request)) if self.meter else ModelCall()
        answered = False
        until = asyncio.get_running_loop().time() + self.retries.answer_s
        try:
            async with aclosing(self.inner.generate_content_async(request, stream)) as responses:
                while (response := await self._next(responses, until)) is not None:
                    _clean(response)
                    call.count(response)
                    if call.answered > MOST_CHARACTERS:
                        raise StoppedError(f"more than {MOST_CHARACTERS:,} characters in one answer")
                    _require_complete(response)
                    self._count_tools(response)
                    answered = answered or bool(response.content and response.content.parts)
                    if not response.partial:
                        call.close()
                    yield response
            if not answered and (ANSWER in request.tools_dict or not _answers_tools(request)):
                raise StoppedError(EMPTY_ANSWER)
        except Exception as error:
            if is_refusal(error):
                call.free = True
            raise
        finally:
            call.close()

    def _count_tools(self, response: LlmResponse) -> None:
        calls = sum(bool(part.function_call) for part in (response.content.parts if response.content else None) or ())
        if calls > MOST_CALLS_IN_ANSWER:
            raise StoppedError(f"{calls:,} tool calls in one answer, of at most {MOST_CALLS_IN_ANSWER}")
        if self.meter is not None and not response.partial:
            self.meter.count_tools(calls)

    async def _next(self, responses: AsyncGenerator[LlmResponse, None], until: float) -> LlmResponse | None:
        now = asyncio.get_running_loop().time()
        seconds = min(self.retries.timeout_s, until - now)
        try:
            async with asyncio.timeout(seconds):
                return await anext(responses, None)
        except TimeoutError as error:
            if seconds < self.retries.timeout_s:
                raise TimeoutError(f"no whole answer within {format_seconds(self.retries.answer_s)}") from error
            raise TimeoutError(f"no answer within {format_seconds(self.retries.timeout_s)}") from error


def _require_complete(response: LlmResponse) -> None:
    if response.error_code:
        raise StoppedError(f"{response.error_code} {response.error_message or ''}".strip())
    if response.finish_reason is not None and response.finish_reason not in COMPLETE:
        raise StoppedError(response.finish_reason.value)


def _characters(request: LlmRequest) -> int:
    """Of the conversation, the instructions and the tools, which are all read anew with each request."""
    config = request.config.model_dump_json(exclude_none=True, exclude={"http_options"}, fallback=str)
    return len(config) + sum(len(content.model_dump_json(exclude_none=True)) for content in request.contents)


def _clean(response: LlmResponse) -> None:
    """Without halves of surrogate pairs, which no file and no terminal takes."""
    for part in (response.content.parts if response.content else None) or ():
        if part.text:
            part.text = whole(part.text)
        if part.function_call and part.function_call.args:
            part.function_call.args = whole(part.function_call.args)


def _answers_tools(request: LlmRequest) -> bool:
    """Whether tools have just answered: a model may have nothing to add to that."""
    parts = request.contents[-1].parts if request.contents else None
    return any(part.function_response for part in parts or ())
