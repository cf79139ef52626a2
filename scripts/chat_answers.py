"""How long the chat takes to answer with the built-in model, once it is warm."""

import statistics
import time
from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from asap.chat.chat import Chat

QUESTIONS = (
    "what is the bottleneck?",
    "why not tp=8?",
    "what if the global batch is 512 and the sequence 8192?",
    "how much HBM does proposal 2 need, by part?",
    "sweep microbatches over 1, 2, 4 and 8",
    "how sure are you about proposal 1?",
    "what about 128 chips?",
    "proposal 1 measured 7.9 s",
    "which one first?",
    "give me the line to paste",
)


def warm_answers() -> Mapping[str, object]:
    """Seconds of each of ten questions about a bundled run, in one conversation after another of the same questions."""
    from asap.chat import open_conversation
    from asap.chat.chat import Chat
    from asap.experiments import ExperimentStore
    from asap.sharding_memory import new_session_name

    opened = open_conversation("llama-8b-tensor-16", ExperimentStore())
    seconds: list[float] = []
    for _ in range(2):
        chat = Chat(replace(opened, session=new_session_name(), evidence=[], focus=None))
        seconds = [_seconds(chat, question) for question in QUESTIONS]
    return {"seconds": statistics.median(seconds), "slowest_seconds": max(seconds), "limit_seconds": 0.3}


def _seconds(chat: "Chat", question: str) -> float:
    start = time.perf_counter()
    chat.turn(question, lambda piece: None)
    return time.perf_counter() - start
