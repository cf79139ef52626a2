"""What a failure of a model's service means: whether a retry may help, when, and what is said of it."""

import math
from collections.abc import Iterator
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime

import httpx
from google.auth.exceptions import TransportError
from google.genai.errors import APIError
from google.genai.types import FinishReason

from asap.agents.llm.http import UnacceptableAnswerError
from asap.core.errors import AsapError, ServiceError
from asap.core.secrets import redacted
from asap.core.text import plain

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
    asked = f" (it asks to wait {waiting:.0f} s)" if waiting else ""
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
