"""What a word of the report means."""

import re
import tomllib
from functools import cache
from pathlib import Path

from asap.chat.answers.this_run.run import principle
from asap.chat.conversation import Conversation
from asap.chat.reply import ReplyBuilder

_ASKS = re.compile(r"\b(?:what(?: is|'s| are| does| do you mean by)?|meaning of|define|explain|mean|means)\b", re.I)
_QUOTED = r"[\"'`“”‘’]"


def asks_term(text: str) -> bool:
    """Whether it asks what a word of the report means: the word in quotes, or a word that stands nowhere else."""
    if not _ASKS.search(text):
        return False
    quoted = any(re.search(rf"{_QUOTED}{re.escape(name)}{_QUOTED}", text, re.I) for name, _ in _terms())
    return quoted or _OF_THE_REPORT.search(text) is not None


def term(conversation: Conversation, answer: ReplyBuilder, text: str) -> None:
    """The meaning of the longest word of the report that is in a question; else what the notes say."""
    found = [(name, means) for name, means in _terms() if re.search(rf"(?<!\w){re.escape(name)}(?!\w)", text, re.I)]
    if not found:
        principle(conversation, answer, text)
        return
    answer.add(max(found, key=lambda one: len(one[0]))[1])


_OF_THE_REPORT = re.compile(
    r"(?<!what )\bcounts\b(?! as\b| the\b| for\b| toward)|\brisk[- ]adjusted\b|\bp\((?:faster|fits)\)", re.I
)
"""Words that mean something in the report alone."""


@cache
def _terms() -> tuple[tuple[str, str], ...]:
    """Each name with what it means."""
    table = tomllib.loads(Path(__file__).with_name("terms.toml").read_text(encoding="utf-8"))
    return tuple((name, each["means"]) for each in table["term"] for name in each["names"])
