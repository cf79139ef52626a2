"""How long the chat takes to answer with the built-in model, once it is warm."""

import statistics
from typing import TYPE_CHECKING

from benchmarks.timing import Result, home, time_of

if TYPE_CHECKING:
    from asap.chat.chat import Chat

QUESTIONS = (
    "what is the bottleneck?",
    "why not tp=8",
    "what if batch=512 seq_len=8192",
    "memory 2",
    "sweep microbatches 1 2 4 8",
    "predict 1",
    "what if chips=128",
    "ran 1 = 7.9s",
    "which one first?",
    "line 1",
)


def chat_answer() -> Result:
    """An answer about a bundled run, and the slowest of ten; warm, as the same ten were asked before."""
    from asap.chat import open_conversation
    from asap.chat.chat import Chat
    from asap.experiments import ExperimentStore
    from asap.sharding_memory import new_session_name

    with home():
        opened = open_conversation("llama-8b-tensor-16", ExperimentStore())
        seconds: list[float] = []
        for _ in range(2):
            chat = Chat(opened.afresh(new_session_name()))
            seconds = [_seconds(chat, question) for question in QUESTIONS]
    return {"seconds": statistics.median(seconds), "slowest_seconds": max(seconds), "limit_seconds": 0.3}


def _seconds(chat: "Chat", question: str) -> float:
    return time_of(lambda: chat.turn(question, lambda piece: None))
