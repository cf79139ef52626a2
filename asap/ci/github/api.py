"""GitHub's REST API: retries, rate limits and pages. The token is sent to the given address and no other."""

import re
import time
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from asap.core.errors import ServiceError, UsageError
from asap.core.numbers import bounded_from_text, digits
from asap.core.text import plain

if TYPE_CHECKING:
    import httpx
    from tenacity import RetryCallState

API = "https://api.github.com"
_PAGE = 100
_MOST_PAGES = 50
_ATTEMPTS = 5
_TIMEOUT_S = 30.0
_MOST_WAITING_S = 120.0
_RATE_LIMIT_PAUSE_S = 60.0
_LOCAL = ("localhost", "127.0.0.1", "::1")


class ConnectionLostError(ServiceError):
    """The connection broke, so a request may or may not have been carried out."""


class GoneError(ServiceError):
    """The object of a request does not exist or is not visible to the token."""


class _TemporaryError(Exception):
    """A failure after which the request may be sent again, and the pause that GitHub asks for."""

    def __init__(self, reason: str, pause_s: float | None = None):
        super().__init__(reason)
        self.pause_s = pause_s


class GitHub:
    """A client for one base URL.

    Args:
        token: of the installation or of a user.
        api: base URL; ``https``, or this machine.
        sleep: called with the seconds to wait.

    Raises:
        UsageError: the URL is not one that a token may be sent to, or there is no token.
    """

    def __init__(self, token: str, api: str = API, sleep: Callable[[float], None] = time.sleep):
        place = urlsplit(api)
        if place.scheme != "https" and not (place.scheme == "http" and place.hostname in _LOCAL):
            raise UsageError("a token is sent over https only", where=plain(api, 80))
        if not re.fullmatch(r"[\x21-\x7e]+", token):
            raise UsageError("there is no token", where="GITHUB_TOKEN", hint="env: GITHUB_TOKEN: ${{ github.token }}")
        import httpx

        headers = {
            "Authorization": f"Bearer {token}",
            "Accept": "application/vnd.github+json",
            "X-GitHub-Api-Version": "2022-11-28",
            "User-Agent": "asap-ci",
        }
        self._client = httpx.Client(base_url=api.rstrip("/"), headers=headers, timeout=_TIMEOUT_S)
        self._sleep = sleep

    def close(self) -> None:
        """Close the connections."""
        self._client.close()

    def pages(self, path: str, parameters: Mapping[str, str] | None = None) -> Iterator[dict[str, Any]]:
        """Every element of a list, page by page."""
        for page in range(1, _MOST_PAGES + 1):
            found = self.request("GET", path, parameters={**(parameters or {}), "per_page": _PAGE, "page": page})
            if not isinstance(found, list):
                raise ServiceError("the response is not a list", where=path)
            yield from (element for element in found if isinstance(element, dict))
            if len(found) < _PAGE:
                return

    def request(self, method: str, path: str, *, parameters: Mapping[str, Any] | None = None, body: Any = None) -> Any:
        """Send a request, again after a temporary failure; the response as JSON, ``None`` if it is empty.

        Raises:
            ConnectionLostError: a ``POST`` that may or may not have been carried out.
            ServiceError: it was refused, or failed too often.
        """
        from tenacity import Retrying, retry_if_exception_type, stop_after_attempt, stop_before_delay

        attempts = Retrying(
            sleep=self._sleep,
            wait=_wait,
            stop=stop_after_attempt(_ATTEMPTS) | stop_before_delay(_MOST_WAITING_S),
            retry=retry_if_exception_type(_TemporaryError),
            reraise=True,
        )
        try:
            return attempts(self._send, method, path, parameters, body)
        except _TemporaryError as error:
            hint = "run the job again later"
            raise ServiceError(f"GitHub did not answer: {error}", where=path, hint=hint) from error

    def _send(self, method: str, path: str, parameters: Mapping[str, Any] | None, body: Any) -> Any:
        import httpx

        try:
            answer = self._client.request(method, path, params=parameters, json=body)
        except httpx.HTTPError as error:
            raise _interrupted(method, path, type(error).__name__) from error
        if answer.status_code < 400:
            return _decoded(answer, path)
        if answer.status_code >= 500:
            raise _interrupted(method, path, _reason(answer))
        if _is_rate_limited(answer):
            raise _TemporaryError(_reason(answer), _rate_limit_pause_s(answer))
        raise _refused(answer, path)


def _interrupted(method: str, path: str, reason: str) -> Exception:
    """A request without a proper response can be repeated, except for a ``POST``."""
    if method == "POST":
        return ConnectionLostError(f"it is unknown whether this was posted: {reason}", where=path)
    return _TemporaryError(reason)


def _wait(state: "RetryCallState") -> float:
    """Seconds until the next attempt: what GitHub asks for, else 1, 2, 4 …"""
    error = state.outcome.exception() if state.outcome else None
    pause_s = error.pause_s if isinstance(error, _TemporaryError) else None
    return 2.0 ** (state.attempt_number - 1) if pause_s is None else pause_s


def _is_rate_limited(answer: "httpx.Response") -> bool:
    exhausted = "retry-after" in answer.headers or answer.headers.get("x-ratelimit-remaining") == "0"
    return answer.status_code == 429 or (answer.status_code == 403 and exhausted)


def _rate_limit_pause_s(answer: "httpx.Response") -> float:
    """https://docs.github.com/en/rest/using-the-rest-api/rate-limits-for-the-rest-api: at least a minute by default."""
    after, reset = answer.headers.get("retry-after", ""), answer.headers.get("x-ratelimit-reset", "")
    if (seconds := digits(after)) is not None:
        return max(seconds, 0)
    try:
        return max(bounded_from_text(reset) - time.time(), 0.0) + 1
    except ValueError:
        return _RATE_LIMIT_PAUSE_S


def _decoded(answer: "httpx.Response", path: str) -> Any:
    if answer.status_code in (204, 205) or not answer.content:
        return None
    if answer.is_redirect:
        raise ServiceError("GitHub says that this has moved", where=path, hint="use the repository's current name")
    try:
        return answer.json()
    except ValueError as error:
        raise ServiceError("the response is not JSON", where=path) from error


def _reason(answer: "httpx.Response") -> str:
    try:
        message = answer.json().get("message", "")
    except (ValueError, AttributeError):
        message = ""
    return plain(f"HTTP {answer.status_code} {message}", 200).strip()


def _refused(answer: "httpx.Response", path: str) -> ServiceError:
    kind = GoneError if answer.status_code == 404 else ServiceError
    hint = "the job needs permissions: pull-requests: write" if answer.status_code in (401, 403, 404) else None
    return kind(f"GitHub refused: {_reason(answer)}", where=path, hint=hint)
