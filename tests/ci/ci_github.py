"""A server that behaves like GitHub's REST API for comments and pull requests."""

import json
import re
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlsplit

BOT = "github-actions[bot]"
LONGEST_BODY = 65_536


@dataclass
class Failure:
    """An answer in place of the real one, a number of times."""

    method: str
    status: int
    headers: dict[str, str] = field(default_factory=dict)
    times: int = 1
    after: bool = False
    """The request is carried out all the same."""


class FakeGitHub:
    """The state behind the server."""

    def __init__(self):
        self.comments: dict[int, dict[str, Any]] = {}
        self.pulls: list[dict[str, Any]] = []
        self.requests: list[tuple[str, str, str]] = []
        self.failures: list[Failure] = []
        self.before_create: Callable[[], None] = lambda: None
        self.before_patch: Callable[[], None] = lambda: None
        self.user = BOT
        self._lock = threading.Lock()
        self._next = 1

    def add(self, body: str, login: str = "somebody") -> int:
        with self._lock:
            number, self._next = self._next, self._next + 1
            self.comments[number] = {"id": number, "body": body, "user": {"login": login}}
            return number

    def of(self, login: str = BOT) -> list[dict[str, Any]]:
        return [comment for comment in self.comments.values() if comment["user"]["login"] == login]

    def pull(self, number: int, sha: str, *, state: str = "open", head: str = "fork:change") -> None:
        branch = head.partition(":")[2]
        self.pulls.append({"number": number, "state": state, "head": {"sha": sha, "ref": branch, "label": head}})

    def answer(self, method: str, target: str, body: Any) -> tuple[int, Any]:
        place, query = urlsplit(target).path, parse_qs(urlsplit(target).query)
        if found := re.fullmatch(r"/repos/o/r/issues/\d+/comments", place):
            if method == "POST":
                self.before_create()
                if len(body["body"]) > LONGEST_BODY:
                    return 422, {"message": "Validation Failed"}
                return 201, self.comments[self.add(body["body"], self.user)]
            return 200, _page(sorted(self.comments.values(), key=lambda one: one["id"]), query)
        if found := re.fullmatch(r"/repos/o/r/issues/comments/(\d+)", place):
            number = int(found[1])
            if method == "PATCH":
                self.before_patch()
            if number not in self.comments:
                return 404, {"message": "Not Found"}
            if method == "DELETE":
                del self.comments[number]
                return 204, None
            self.comments[number]["body"] = body["body"]
            return 200, self.comments[number]
        if found := re.fullmatch(r"/repos/o/r/pulls/(\d+)", place):
            return next(((200, one) for one in self.pulls if one["number"] == int(found[1])), (404, {}))
        if place == "/repos/o/r/pulls":
            label = query["head"][0]
            listed = [one for one in self.pulls if one["state"] == "open" and one["head"]["label"] == label]
            return 200, _page(listed, query)
        return 404, {"message": "Not Found"}

    def failure(self, method: str) -> Failure | None:
        found = next((one for one in self.failures if one.method == method and one.times > 0), None)
        if found:
            found.times -= 1
        return found


def _page(items: list[Any], query: dict[str, list[str]]) -> list[Any]:
    size, page = int(query.get("per_page", ["30"])[0]), int(query.get("page", ["1"])[0])
    return items[(page - 1) * size : page * size]


@contextmanager
def serve(state: FakeGitHub) -> Iterator[str]:
    """The address of a running server."""

    class Handler(BaseHTTPRequestHandler):
        def _serve(self) -> None:
            length = int(self.headers.get("Content-Length") or 0)
            body = json.loads(self.rfile.read(length)) if length else None
            state.requests.append((self.command, self.path, self.headers.get("Authorization", "")))
            failure = state.failure(self.command)
            if failure is not None and not failure.after:
                self._send(failure.status, {"message": "no"}, failure.headers)
                return
            status, answer = state.answer(self.command, self.path, body)
            if failure is not None:
                status, answer = failure.status, {"message": "no"}
            self._send(status, answer, failure.headers if failure else {})

        def _send(self, status: int, answer: Any, headers: dict[str, str]) -> None:
            content = b"" if answer is None else json.dumps(answer).encode()
            self.send_response(status)
            for name, value in headers.items():
                self.send_header(name, value)
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, format: str, *args: object) -> None:
            pass

        do_GET = do_POST = do_PATCH = do_DELETE = _serve  # noqa: N815

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
