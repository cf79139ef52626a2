"""The HTTP connection to a language model: no redirect is followed, and no answer is without end.

A redirect would carry the key and the figures of a run to a host that the user did not name.
"""

import asyncio
import re
from collections.abc import AsyncIterator, Callable
from typing import Any

import httpx

from asap.core.errors import ServiceError
from asap.core.text import plain

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
