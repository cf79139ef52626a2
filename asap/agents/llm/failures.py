"""The connection to a model's service: what it may answer, and what a failure means and whether a retry may help."""

import asyncio
import math
import re
from collections.abc import AsyncIterator, Callable, Iterator
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Any

import httpx
from google.auth.exceptions import TransportError
from google.genai.errors import APIError
from google.genai.types import FinishReason

from asap.core.errors import AsapError, ServiceError
from asap.core.secrets import redacted
from asap.core.text import plain
from asap.core.units import format_seconds

LARGEST_ANSWER = 16 * 2**20
"""Bytes of one answer; a long one has some ten thousand."""

LARGEST_COMPRESSED_ANSWER = 2**20
"""A megabyte of compressed zeros is a gigabyte."""

PLAIN = {"Accept-Encoding": "identity"}
ENDS = {
    rb'"candidates"': rb'"finishReason"',
    rb'"chat\.completion\.chunk"': rb'\[DONE\]|"finish_reason": ?"',
    rb'"message_start"': rb'"message_stop"|"stop_reason": ?"',
    rb'"done": ?false': rb'"done": ?true',
}
"""What pieces of a streamed answer have in each protocol (Gemini, OpenAI, Anthropic, Ollama), and its last pieces."""
LONGEST_END = 16_384
STREAMS = ("text/event-stream", "application/x-ndjson")


class UnacceptableAnswerError(ServiceError):
    """A server redirects, or sends more than a language model says, or half of it."""


class _BoundedStream(httpx.AsyncByteStream):
    """The bytes of an answer, up to a limit; if it comes in pieces, with the last one."""

    def __init__(self, inner: httpx.AsyncByteStream, host: str, limit: int, in_pieces: bool):
        self._inner, self._host, self._limit, self._in_pieces = inner, host, limit, in_pieces

    async def __aiter__(self) -> AsyncIterator[bytes]:
        size, begin, end = 0, b"", b""
        async for chunk in self._inner:
            await asyncio.sleep(0)  # a client that parses without end gives the timeout no other chance
            size += len(chunk)
            if size > self._limit:
                raise UnacceptableAnswerError(f"its answer is larger than {self._limit >> 20} MiB", where=self._host)
            begin, end = begin or chunk, (end + chunk)[-LONGEST_END:]
            yield chunk
        if self._in_pieces and any(
            re.search(piece, begin) and not re.search(last, end) for piece, last in ENDS.items()
        ):
            raise UnacceptableAnswerError("its answer stops in the middle", where=self._host)

    async def aclose(self) -> None:
        await self._inner.aclose()


def http_client() -> httpx.AsyncClient:
    """A client for google-genai and for the SDK of OpenAI; it keeps no connection, so any event loop may use it."""
    return httpx.AsyncClient(
        follow_redirects=False,
        timeout=None,
        limits=httpx.Limits(max_keepalive_connections=0),
        headers=PLAIN,
        event_hooks=_hooks(),
    )


def guard_litellm() -> None:
    """Have LiteLLM use clients that refuse the same, whatever the provider."""
    import litellm
    from litellm.caching.llm_caching_handler import LLMClientCache
    from litellm.llms.custom_httpx.http_handler import AsyncHTTPHandler

    class GuardedClients(LLMClientCache):
        """Every client of LiteLLM's own passes through this cache before its first request."""

        def set_cache(self, key: str, value: object, litellm_owned_client: bool = False, **options: Any) -> Any:
            if isinstance(value, AsyncHTTPHandler):
                value.follow_redirects = False
                value.client.follow_redirects = False
                value.event_hooks = value.client.event_hooks = _hooks()
                value.client.headers.update(PLAIN)
            return super().set_cache(key, value, litellm_owned_client, **options)

    if litellm.aclient_session is None:
        litellm.aclient_session = http_client()
        litellm.in_memory_llm_clients_cache = GuardedClients()


def _hooks() -> dict[str, list[Callable[..., Any]]]:
    return {"response": [_require_acceptable]}


async def _require_acceptable(response: httpx.Response) -> None:
    host = response.url.host
    if response.is_redirect:
        target = plain(response.headers.get("location", "nowhere"), 120)
        hint = "a redirect is not followed; set the address that is meant"
        raise UnacceptableAnswerError(f"it redirects to {target}", where=host, hint=hint)
    compressed = response.headers.get("content-encoding", "identity") != "identity"
    limit = LARGEST_COMPRESSED_ANSWER if compressed else LARGEST_ANSWER
    assert isinstance(response.stream, httpx.AsyncByteStream)
    in_pieces = response.headers.get("content-type", "").startswith(STREAMS)
    response.stream = _BoundedStream(response.stream, host, limit, in_pieces)


LONGEST_REASON = 300
TRANSIENT_STATUS = {408, 429, *range(500, 600)}
"""HTTP status codes after which a request is retried."""

MOST_CAUSES = 20
EMPTY_ANSWER = "an empty answer"


class StoppedError(Exception):
    """The service ended an answer early: a safety filter, the output limit, a malformed tool call, an empty answer."""

    @property
    def is_transient(self) -> bool:
        """Whether a retry may help."""
        return str(self).startswith((FinishReason.MALFORMED_FUNCTION_CALL.value, EMPTY_ANSWER))


def is_transient(error: BaseException, longest_wait_s: float) -> bool:
    """Whether the same request may succeed, and the service does not ask for a longer wait than is acceptable."""
    if isinstance(error, StoppedError):
        return error.is_transient
    if isinstance(error, AsapError) or _unacceptable(error) is not None or retry_after_s(error) > longest_wait_s:
        return False
    lost = isinstance(error, TimeoutError | ConnectionError | httpx.TransportError | TransportError)
    return lost or _status(error) in TRANSIENT_STATUS


def is_refusal(error: Exception) -> bool:
    """Whether the service answered with an error status, and so counted no tokens.

    LiteLLM gives a status to whatever goes wrong; what was answered is told by what lies behind its errors.
    """
    return any(isinstance(cause, httpx.HTTPStatusError | APIError) for cause in _causes(error))


def retry_after_s(error: BaseException) -> float:
    """Seconds that the service asks to wait (RFC 9110, ``Retry-After``: seconds or a date); 0 if it asks for none."""
    headers = (getattr(getattr(cause, "response", None), "headers", None) or {} for cause in _causes(error))
    asked = next((found["retry-after"] for found in headers if "retry-after" in found), "")
    try:
        seconds = float(asked)
    except ValueError:
        try:
            seconds = (parsedate_to_datetime(asked) - datetime.now(UTC)).total_seconds()
        except (ValueError, TypeError, OverflowError):
            return 0.0
    return max(seconds, 0.0) if math.isfinite(seconds) else 0.0


def service_error(error: Exception, model: str) -> ServiceError:
    """The failure in one line, without keys."""
    refused, waiting = _unacceptable(error), retry_after_s(error)
    asked = f" (it asks to wait {format_seconds(waiting)})" if waiting else ""
    if refused is not None:
        reason = str(refused)
    elif isinstance(error, StoppedError):
        reason = f"stopped with {error}"
    else:
        said = str(error).partition("Traceback (most recent call last)")[0].strip()
        reason = f"{type(error).__name__}: {said or 'the connection broke'}"
    return ServiceError(f"the model failed: {plain(redacted(reason), LONGEST_REASON)}{asked}", where=model)


def _unacceptable(error: BaseException) -> UnacceptableAnswerError | None:
    return next((cause for cause in _causes(error) if isinstance(cause, UnacceptableAnswerError)), None)


def _causes(error: BaseException) -> Iterator[BaseException]:
    """An error and what lies behind it: the clients wrap what their connection raises."""
    cause: BaseException | None = error
    for _ in range(MOST_CAUSES):
        if cause is None:
            return
        yield cause
        cause = cause.__cause__ or cause.__context__


def _status(error: BaseException) -> int | None:
    """The HTTP status of an error, as google-genai or LiteLLM reports it."""
    found = getattr(error, "status_code", None) or getattr(error, "code", None)
    return found if isinstance(found, int) else None
