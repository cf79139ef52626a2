"""An answer in many pieces, and what may become of them on their way."""

import json
from collections.abc import Callable
from typing import Any

from tests.language_models.protocols import ANTHROPIC, GEMINI, OLLAMA, OPENAI, Protocol, Say
from tests.language_models.server import Reply

Pieces = list[bytes]
WORDS = [f"word {number}. " for number in range(20)]


def pieces(protocol: Protocol) -> Pieces:
    """The words, one a piece, as a protocol streams them."""
    if protocol is ANTHROPIC:
        start, block, delta, *end = protocol.pieces(Say("words"))
        return [start, block, *(delta.replace(b'"words"', json.dumps(word).encode()) for word in WORDS), *end]
    between = [_piece(protocol, word, number == len(WORDS)) for number, word in enumerate(WORDS, 1)]
    return [*between, b"data: [DONE]\n\n"] if protocol is OPENAI else between


def _piece(protocol: Protocol, word: str, last: bool) -> bytes:
    (first, *_) = protocol.pieces(Say(word))
    if last:
        return first
    body: dict[str, Any] = json.loads(first.removeprefix(b"data: "))
    if protocol is OLLAMA:
        return json.dumps(body | {"done": False, "done_reason": None}).encode() + b"\n"
    (choice,) = body["candidates" if protocol is GEMINI else "choices"]
    choice.pop("finishReason" if protocol is GEMINI else "finish_reason")
    return b"data: " + json.dumps(body).encode() + b"\n\n"


def _half(whole: Pieces) -> Pieces:
    return whole[: len(whole) // 2]


def _torn(whole: Pieces) -> bytes:
    return whole[len(whole) // 2][:-20]


CUT: dict[str, Callable[[Pieces], Pieces]] = {
    "cut between two pieces": _half, "cut within a piece": lambda whole: [*_half(whole), _torn(whole)],
    "without its end": lambda whole: whole[:-3],
    "a piece without end": lambda whole: [*_half(whole), whole[5].replace(b"word", b"word " * 4_000_000), *whole[-9:]],
}  # fmt: skip
"""Of which half an answer is left, or too much."""
MIXED: dict[str, Callable[[Pieces], Pieces]] = {
    "each twice": lambda whole: [one for each in whole for one in (each, each)],
    "whole twice": lambda whole: whole + whole, "backwards": lambda whole: whole[::-1],
    "the last first": lambda whole: [*whole[-1:], *whole[:-1]], "nothing": lambda whole: [],
    "a torn piece in the middle": lambda whole: [*_half(whole), _torn(whole), b"\n\n", *whole[len(whole) // 2 :]],
    "a page in the middle": lambda whole: [*_half(whole), b"<html>busy</html>\n\n", *whole[len(whole) // 2 :]],
    "surrogates and escapes": lambda whole: [one.replace(b"word", b"\\ud800\\u0000\\u001b[31m") for one in whole],
}  # fmt: skip
"""Of which no protocol lets one tell that it is not what was meant."""


def streamed(protocol: Protocol, change: Callable[[Pieces], Pieces], **how: Any) -> Reply:
    """The answer of a server in the changed pieces."""
    return Reply(body=b"".join(change(pieces(protocol))), kind=protocol.kind, **how)
