"""The protocols that language models are spoken to in: how each asks, and how each answers, whole or streamed."""

import json
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from tests.cases import kept

INSTRUCTIONS = kept(__file__)["INSTRUCTIONS"]
READ, WRITTEN = 1000, 100
"""Tokens of every answer."""


@dataclass(frozen=True)
class Say:
    """An answer in words."""

    text: str


@dataclass(frozen=True)
class Ask:
    """A call of tools: name and arguments."""

    calls: list[tuple[str, dict[str, Any]]]


@dataclass
class Question:
    """What one request asks: by whom, and what the tools have answered since the last user turn."""

    agent: str
    asked: str
    answers: dict[str, Any]
    text: str
    headers: dict[str, str]


@dataclass(frozen=True)
class Protocol:
    """One protocol.

    Args:
        turns: of a request: who speaks (``system``, ``user``, or the name of a tool), and what.
        whole: an answer as one document.
        pieces: an answer as the pieces of a stream.
        kind: content type of a stream.
    """

    turns: Callable[[dict[str, Any]], Iterator[tuple[str, Any]]]
    whole: Callable[[Say | Ask], dict[str, Any]]
    pieces: Callable[[Say | Ask], Iterator[bytes]]
    kind: str = "text/event-stream"

    def question(self, request: dict[str, Any], headers: dict[str, str]) -> Question:
        asked, answers, instruction = "", {}, ""
        for speaker, said in self.turns(request):
            if speaker == "system":
                instruction += said
            elif speaker == "user":
                asked, answers = said, {}
            else:
                answers[speaker] = said
        agent = next((agent for agent, title in INSTRUCTIONS.items() if title in instruction), "")
        return Question(agent, asked, answers, json.dumps(request), headers)


def protocol_of(path: str) -> Protocol:
    """The protocol that is spoken at a path."""
    if "/models/" in path:
        return GEMINI
    return ANTHROPIC if path.endswith("/messages") else OLLAMA if path.endswith("/api/chat") else OPENAI


def _event(body: dict[str, Any], name: str = "") -> bytes:
    return (f"event: {name}\n" if name else "").encode() + b"data: " + json.dumps(body).encode() + b"\n\n"


def _parsed(text: Any) -> Any:
    with suppress(ValueError, TypeError):
        return json.loads(text)
    return text


def _joined(content: Any) -> str:
    return content if isinstance(content, str) else "".join(part.get("text", "") for part in content or ())


def _identified(answer: Ask) -> Iterator[tuple[str, str, dict[str, Any]]]:
    for number, (name, arguments) in enumerate(answer.calls):
        yield f"call_{number}_{time.monotonic_ns()}", name, arguments


def _gemini_turns(request: dict[str, Any]) -> Iterator[tuple[str, Any]]:
    yield "system", json.dumps(request.get("systemInstruction", ""))
    for content in request["contents"]:
        for part in content["parts"]:
            if "text" in part and content["role"] == "user":
                yield "user", part["text"]
            elif "functionResponse" in part:
                yield part["functionResponse"]["name"], part["functionResponse"]["response"]


def _gemini_whole(answer: Say | Ask) -> dict[str, Any]:
    if isinstance(answer, Say):
        parts: list[Any] = [{"text": answer.text}]
    else:
        parts = [{"functionCall": {"name": name, "args": arguments}} for name, arguments in answer.calls]
    return {
        "candidates": [{"content": {"role": "model", "parts": parts}, "finishReason": "STOP", "index": 0}],
        "usageMetadata": {"promptTokenCount": READ, "candidatesTokenCount": WRITTEN, "totalTokenCount": READ + WRITTEN},
    }


def _openai_turns(request: dict[str, Any]) -> Iterator[tuple[str, Any]]:
    names: dict[str, str] = {}
    for message in request["messages"]:
        text = _joined(message.get("content"))
        if message["role"] in {"system", "developer"}:
            yield "system", text
        elif message["role"] == "user":
            yield "user", text
        elif message["role"] == "tool":
            yield names[message["tool_call_id"]], _parsed(text)
        names |= {call["id"]: call["function"]["name"] for call in message.get("tool_calls") or ()}


def _openai_whole(answer: Say | Ask) -> dict[str, Any]:
    message: dict[str, Any] = {"role": "assistant", "content": None}
    if isinstance(answer, Say):
        message["content"] = answer.text
    else:
        message["tool_calls"] = [
            {"id": key, "type": "function", "index": number,
             "function": {"name": name, "arguments": json.dumps(arguments)}}
            for number, (key, name, arguments) in enumerate(_identified(answer))
        ]  # fmt: skip
    reason = "tool_calls" if isinstance(answer, Ask) else "stop"
    return {
        "id": "1", "object": "chat.completion", "created": 1, "model": "local",
        "choices": [{"index": 0, "message": message, "finish_reason": reason}],
        "usage": {"prompt_tokens": READ, "completion_tokens": WRITTEN, "total_tokens": READ + WRITTEN},
    }  # fmt: skip


def _openai_pieces(answer: Say | Ask) -> Iterator[bytes]:
    body = _openai_whole(answer)
    body["object"] = "chat.completion.chunk"
    body["choices"][0]["delta"] = body["choices"][0].pop("message")
    yield _event(body)
    yield b"data: [DONE]\n\n"


def _anthropic_turns(request: dict[str, Any]) -> Iterator[tuple[str, Any]]:
    yield "system", _joined(request.get("system"))
    names: dict[str, str] = {}
    for message in request["messages"]:
        content = message["content"]
        for block in [{"type": "text", "text": content}] if isinstance(content, str) else content:
            if block["type"] == "tool_use":
                names[block["id"]] = block["name"]
            elif block["type"] == "tool_result":
                yield names[block["tool_use_id"]], _parsed(_joined(block["content"]))
            elif message["role"] == "user":
                yield "user", block["text"]


def _anthropic_whole(answer: Say | Ask) -> dict[str, Any]:
    if isinstance(answer, Say):
        blocks: list[dict[str, Any]] = [{"type": "text", "text": answer.text}]
    else:
        blocks = [
            {"type": "tool_use", "id": key, "name": name, "input": arguments}
            for key, name, arguments in _identified(answer)
        ]
    return {
        "id": "1", "type": "message", "role": "assistant", "model": "local", "content": blocks,
        "stop_reason": "tool_use" if isinstance(answer, Ask) else "end_turn", "stop_sequence": None,
        "usage": {"input_tokens": READ, "output_tokens": WRITTEN},
    }  # fmt: skip


def _anthropic_pieces(answer: Say | Ask) -> Iterator[bytes]:
    whole = _anthropic_whole(answer)
    start = whole | {"content": [], "stop_reason": None, "usage": {"input_tokens": READ, "output_tokens": 0}}
    yield _event({"type": "message_start", "message": start}, "message_start")
    for index, block in enumerate(whole["content"]):
        if block["type"] == "text":
            empty, delta = block | {"text": ""}, {"type": "text_delta", "text": block["text"]}
        else:
            empty = block | {"input": {}}
            delta = {"type": "input_json_delta", "partial_json": json.dumps(block["input"])}
        yield _event({"type": "content_block_start", "index": index, "content_block": empty}, "content_block_start")
        yield _event({"type": "content_block_delta", "index": index, "delta": delta}, "content_block_delta")
        yield _event({"type": "content_block_stop", "index": index}, "content_block_stop")
    end = {"type": "message_delta", "delta": {"stop_reason": whole["stop_reason"]}, "usage": whole["usage"]}
    yield _event(end, "message_delta")
    yield _event({"type": "message_stop"}, "message_stop")


def _ollama_turns(request: dict[str, Any]) -> Iterator[tuple[str, Any]]:
    names: list[str] = []
    for message in request["messages"]:
        if message["role"] == "tool":
            yield names.pop(0) if names else "", _parsed(message["content"])
        elif message["role"] in {"system", "user"}:
            names = []
            yield message["role"], message["content"]
        names += [call["function"]["name"] for call in message.get("tool_calls") or ()]


def _ollama_whole(answer: Say | Ask) -> dict[str, Any]:
    message: dict[str, Any] = {"role": "assistant", "content": answer.text if isinstance(answer, Say) else ""}
    if isinstance(answer, Ask):
        message["tool_calls"] = [
            {"function": {"name": name, "arguments": arguments}} for name, arguments in answer.calls
        ]
    return {
        "model": "local", "created_at": "2026-01-01T00:00:00Z", "message": message, "done": True, "done_reason": "stop",
        "prompt_eval_count": READ, "eval_count": WRITTEN,
    }  # fmt: skip


GEMINI = Protocol(_gemini_turns, _gemini_whole, lambda answer: iter((_event(_gemini_whole(answer)),)))
OPENAI = Protocol(_openai_turns, _openai_whole, _openai_pieces)
ANTHROPIC = Protocol(_anthropic_turns, _anthropic_whole, _anthropic_pieces)
OLLAMA = Protocol(
    _ollama_turns, _ollama_whole, lambda answer: iter((json.dumps(_ollama_whole(answer)).encode() + b"\n",)),
    "application/x-ndjson",
)  # fmt: skip
