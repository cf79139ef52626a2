"""Any language model as ASAP asks it: counted, not waited for without end, asked again where that can help.

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

from asap.agents.meter import Call, Meter
from asap.agents.roles import ANSWER
from asap.agents.settings import Patience
from asap.core.errors import AsapError, ServiceError
from asap.core.text import plain
from asap.sharding_memory import redacted

LONGEST_REASON = 300
BUSY = {408, 429, *range(500, 600)}
"""HTTP states that may pass."""

WHOLE = {FinishReason.STOP, FinishReason.OTHER, FinishReason.FINISH_REASON_UNSPECIFIED}
"""Why an answer ends that is not cut off. Servers that speak OpenAI's protocol end for other reasons of their own."""


class StoppedError(Exception):
    """The service ended an answer before it was whole: a filter, a limit of length, a call that is no call."""

    @property
    def may_pass(self) -> bool:
        """Whether the model may do better when it is asked again."""
        return str(self).startswith((FinishReason.MALFORMED_FUNCTION_CALL.value, "nothing"))


class Service(BaseLlm):
    """A model with patience and a meter.

    Args:
        model: its name.
        inner: the model itself.
        patience: how long it is waited for, and how often it is asked.
        meter: counts what it uses and holds the limits.
    """

    inner: BaseLlm
    patience: Patience
    meter: Meter | None = None

    @property
    def capabilities(self) -> LlmCapabilities:
        """Schemas are answered through ``set_model_response``."""
        return LlmCapabilities(output_schema_and_tools=False)

    async def generate_content_async(
        self, llm_request: LlmRequest, stream: bool = False
    ) -> AsyncGenerator[LlmResponse, None]:
        """Ask; ask again as long as nothing was answered and the failure may pass.

        Raises:
            LimitError: a limit of the meter was reached.
            ServiceError: the model failed.
        """
        for attempt in range(1, self.patience.attempts + 1):
            spoken = False
            try:
                async with aclosing(self._attempt(llm_request, stream)) as responses:
                    async for response in responses:
                        spoken = True
                        yield response
                return
            except AsapError:
                raise
            except Exception as error:
                if spoken or attempt == self.patience.attempts or not _may_pass(error):
                    raise ServiceError(f"the model failed: {_reason(error)}", where=self.model) from error
            await asyncio.sleep(self.patience.first_delay_s * 2 ** (attempt - 1))

    async def _attempt(self, request: LlmRequest, stream: bool) -> AsyncGenerator[LlmResponse, None]:
        call = await self.meter.admit() if self.meter else Call()
        said = False
        try:
            async with aclosing(self.inner.generate_content_async(request, stream)) as responses:
                while (response := await self._next(responses)) is not None:
                    call.count(response.usage_metadata)
                    _refuse_unless_whole(response)
                    said = said or bool(response.content and response.content.parts)
                    if not response.partial:
                        call.close()
                    yield response
            if not said and ANSWER in request.tools_dict:
                raise StoppedError("nothing was answered")
        except Exception as error:
            if _is_refusal(error):
                call.count_nothing()
            raise
        finally:
            call.close()

    async def _next(self, responses: AsyncGenerator[LlmResponse, None]) -> LlmResponse | None:
        try:
            async with asyncio.timeout(self.patience.timeout_s):
                return await anext(responses, None)
        except TimeoutError as error:
            raise TimeoutError(f"no answer in {self.patience.timeout_s:g} s") from error


def _refuse_unless_whole(response: LlmResponse) -> None:
    if response.error_code:
        raise StoppedError(f"{response.error_code} {response.error_message or ''}".strip())
    if response.finish_reason is not None and response.finish_reason not in WHOLE:
        raise StoppedError(response.finish_reason.value)


def _may_pass(error: Exception) -> bool:
    if isinstance(error, StoppedError):
        return error.may_pass
    return isinstance(error, TimeoutError | ConnectionError) or _status(error) in BUSY


def _status(error: Exception) -> int | None:
    """The HTTP state that an error stands for, as google-genai or LiteLLM names it."""
    found = getattr(error, "status_code", None) or getattr(error, "code", None)
    return found if isinstance(found, int) else None


def _is_refusal(error: Exception) -> bool:
    """Whether the service answered with an error; LiteLLM gives a state to lost connections as well."""
    lost = any(kind.__name__ == "APIConnectionError" for kind in type(error).__mro__)
    return _status(error) is not None and not lost


def _reason(error: Exception) -> str:
    said = f"stopped with {error}" if isinstance(error, StoppedError) else f"{type(error).__name__}: {error}"
    return plain(redacted(said), LONGEST_REASON)
