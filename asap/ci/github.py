"""GitHub's REST API: retries, rate limits and pages. The token goes to the one address that was given, no other."""

import re
import time
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from asap.core.errors import ServiceError, UsageError
from asap.core.text import plain

if TYPE_CHECKING:
    import httpx

API = "https://api.github.com"
_PAGE = 100
_MOST_PAGES = 50
_ATTEMPTS = 5
_TIMEOUT_S = 30.0
_PATIENCE_S = 120.0
_LOCAL = ("localhost", "127.0.0.1", "::1")


class LostError(ServiceError):
    """A request that may or may not have been carried out."""


class GoneError(ServiceError):
    """What a request is about does not exist, or may not be seen."""


class GitHub:
    """A client for one address.

    Args:
        token: of the installation or of a user.
        api: where the API lies; ``https``, or this machine.
        sleep: waits so many seconds.

    Raises:
        UsageError: the address is not one that a token may be sent to, or there is no token.
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
        """Every element of a list."""
        for page in range(1, _MOST_PAGES + 1):
            found = self.request("GET", path, parameters={**(parameters or {}), "per_page": _PAGE, "page": page})
            if not isinstance(found, list):
                raise ServiceError("the answer is not a list", where=path)
            yield from (element for element in found if isinstance(element, dict))
            if len(found) < _PAGE:
                return

    def request(self, method: str, path: str, *, parameters: Mapping[str, Any] | None = None, body: Any = None) -> Any:
        """The answer as JSON; ``None`` where there is none.

        Raises:
            LostError: a ``POST`` of which it is not known whether it was carried out.
            ServiceError: it was refused, or failed too often.
        """
        waited, reason = 0.0, ""
        for attempt in range(_ATTEMPTS):
            answer, reason = self._send(method, path, parameters, body)
            if answer is not None and answer.status_code < 400:
                return _decoded(answer, path)
            pause = _pause(answer, attempt)
            if answer is not None:
                reason = _reason(answer)
            if pause is None:
                raise _refused(answer, path, reason)
            if method == "POST" and (answer is None or answer.status_code >= 500):
                raise LostError(f"it is not known whether this was posted: {reason}", where=path)
            if waited + pause > _PATIENCE_S:
                break
            if attempt < _ATTEMPTS - 1:
                self._sleep(pause)
                waited += pause
        raise ServiceError(f"GitHub did not answer: {reason}", where=path, hint="run the job again later")

    def _send(
        self, method: str, path: str, parameters: Mapping[str, Any] | None, body: Any
    ) -> tuple["httpx.Response | None", str]:
        import httpx

        try:
            return self._client.request(method, path, params=parameters, json=body), ""
        except httpx.HTTPError as error:
            return None, type(error).__name__


def _pause(answer: "httpx.Response | None", attempt: int) -> float | None:
    """Seconds until another attempt makes sense; ``None`` if none does."""
    backoff = float(2**attempt)
    if answer is None or answer.status_code >= 500:
        return backoff
    limited = answer.status_code == 429 or (
        answer.status_code == 403
        and ("retry-after" in answer.headers or answer.headers.get("x-ratelimit-remaining") == "0")
    )
    if not limited:
        return None
    after, reset = answer.headers.get("retry-after", ""), answer.headers.get("x-ratelimit-reset", "")
    if after.isdigit():
        return float(after)
    return max(float(reset) - time.time(), 0.0) + 1 if reset.isdigit() else max(backoff, 60.0)


def _decoded(answer: "httpx.Response", path: str) -> Any:
    if answer.status_code in (204, 205) or not answer.content:
        return None
    if answer.is_redirect:
        raise ServiceError("GitHub says that this has moved", where=path, hint="use the repository's present name")
    try:
        return answer.json()
    except ValueError as error:
        raise ServiceError("the answer is not JSON", where=path) from error


def _reason(answer: "httpx.Response") -> str:
    try:
        message = answer.json().get("message", "")
    except (ValueError, AttributeError):
        message = ""
    return plain(f"HTTP {answer.status_code} {message}", 200).strip()


def _refused(answer: "httpx.Response | None", path: str, reason: str) -> ServiceError:
    status = answer.status_code if answer is not None else 0
    kind = GoneError if status == 404 else ServiceError
    hint = "the job needs permissions: pull-requests: write" if status in (401, 403, 404) else None
    return kind(f"GitHub refused: {reason}", where=path, hint=hint)
