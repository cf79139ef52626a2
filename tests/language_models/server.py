"""A local server that speaks two protocols: Gemini's (unary and streamed) and OpenAI's. A script says what it answers.

A script gets a :class:`Question` and returns tool calls, text or a :class:`Reply` with any status and body.
"""

import json
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any

INSTRUCTIONS = {"coordinator": "# Coordinator", "analyzer": "# Analyzer", "proposal": "# Proposal"}


@dataclass(frozen=True)
class Say:
    """An answer in words."""

    text: str


@dataclass(frozen=True)
class Ask:
    """A call of tools: name and arguments."""

    calls: list[tuple[str, dict[str, Any]]]


@dataclass(frozen=True)
class Reply:
    """Anything that a server can do wrong."""

    status: int = 200
    body: bytes | dict[str, Any] = b""
    delay_s: float = 0.0
    cut: bool = False
    kind: str = "application/json"


@dataclass
class Question:
    """What one request asks: by whom, and what the tools have answered since the last user turn."""

    agent: str
    asked: str
    answers: dict[str, Any]
    text: str
    headers: dict[str, str]


Script = Callable[[Question], Say | Ask | Reply]


@dataclass
class ModelServer:
    """Runs while it is used as a context."""

    script: Script
    questions: list[Question] = field(default_factory=list)

    def __enter__(self) -> "ModelServer":
        model = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self) -> None:
                _serve(self, model)

            def log_message(self, format: str, *args: Any) -> None:
                pass

        self._http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._http.daemon_threads = True
        Thread(target=self._http.serve_forever, args=(0.05,), daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._http.shutdown()
        self._http.server_close()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._http.server_port}"


def _serve(handler: BaseHTTPRequestHandler, model: ModelServer) -> None:
    request = json.loads(handler.rfile.read(int(handler.headers["Content-Length"])))
    gemini = "/models/" in handler.path
    question = (_gemini_question if gemini else _openai_question)(request, dict(handler.headers))
    model.questions.append(question)
    answer = model.script(question)
    if isinstance(answer, Reply):
        time.sleep(answer.delay_s)
        body = answer.body if isinstance(answer.body, bytes) else json.dumps(answer.body).encode()
        with suppress(OSError):
            _send(handler, answer.status, body, answer.kind, len(body) + (100 if answer.cut else 0))
        handler.close_connection = True
        return
    body = (_gemini_answer if gemini else _openai_answer)(answer)
    if "stream" in handler.path or request.get("stream"):
        end = b"" if gemini else b"data: [DONE]\n\n"
        if not gemini:
            body["choices"][0]["delta"] = body["choices"][0].pop("message")
        _send(handler, 200, b"data: " + json.dumps(body).encode() + b"\n\n" + end, "text/event-stream")
    else:
        _send(handler, 200, json.dumps(body).encode(), "application/json")


def _send(handler: BaseHTTPRequestHandler, status: int, body: bytes, kind: str, length: int | None = None) -> None:
    handler.send_response(status)
    handler.send_header("Content-Type", kind)
    handler.send_header("Content-Length", str(len(body) if length is None else length))
    handler.end_headers()
    handler.wfile.write(body)


def _agent(instruction: str) -> str:
    return next((agent for agent, title in INSTRUCTIONS.items() if title in instruction), "")


def _gemini_question(request: dict[str, Any], headers: dict[str, str]) -> Question:
    asked, answers = "", {}
    for content in request["contents"]:
        for part in content["parts"]:
            if "text" in part and content["role"] == "user":
                asked, answers = part["text"], {}
            elif "functionResponse" in part:
                answers[part["functionResponse"]["name"]] = part["functionResponse"]["response"]
    instruction = json.dumps(request.get("systemInstruction", ""))
    return Question(_agent(instruction), asked, answers, json.dumps(request), headers)


def _openai_question(request: dict[str, Any], headers: dict[str, str]) -> Question:
    asked, answers, instruction, names = "", {}, "", {}
    for message in request["messages"]:
        content = message.get("content") or ""
        text = content if isinstance(content, str) else "".join(part.get("text", "") for part in content)
        if message["role"] in {"system", "developer"}:
            instruction += text
        elif message["role"] == "user":
            asked, answers = text, {}
        elif message["role"] == "tool":
            answers[names[message["tool_call_id"]]] = _parsed(text)
        names |= {call["id"]: call["function"]["name"] for call in message.get("tool_calls") or ()}
    return Question(_agent(instruction), asked, answers, json.dumps(request), headers)


def _parsed(text: str) -> Any:
    with suppress(ValueError):
        return json.loads(text)
    return text


def _gemini_answer(answer: Say | Ask) -> dict[str, Any]:
    if isinstance(answer, Say):
        parts: list[Any] = [{"text": answer.text}]
    else:
        parts = [{"functionCall": {"name": name, "args": arguments}} for name, arguments in answer.calls]
    return {
        "candidates": [{"content": {"role": "model", "parts": parts}, "finishReason": "STOP", "index": 0}],
        "usageMetadata": {"promptTokenCount": 1000, "candidatesTokenCount": 100, "totalTokenCount": 1100},
    }


def _openai_answer(answer: Say | Ask) -> dict[str, Any]:
    message: dict[str, Any] = {"role": "assistant", "content": None}
    if isinstance(answer, Say):
        message["content"] = answer.text
    else:
        message["tool_calls"] = [
            {"id": f"call_{n}_{time.monotonic_ns()}", "type": "function", "index": n,
             "function": {"name": name, "arguments": json.dumps(arguments)}}
            for n, (name, arguments) in enumerate(answer.calls)
        ]  # fmt: skip
    reason = "tool_calls" if isinstance(answer, Ask) else "stop"
    return {
        "id": "1",
        "object": "chat.completion",
        "created": 1,
        "model": "local",
        "choices": [{"index": 0, "message": message, "finish_reason": reason}],
        "usage": {"prompt_tokens": 1000, "completion_tokens": 100, "total_tokens": 1100},
    }
