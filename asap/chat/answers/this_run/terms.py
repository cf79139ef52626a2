"""What a word of the report means."""

import re
import tomllib
from functools import cache
from pathlib import Path

from asap.chat.answers.this_run.run import principle
from asap.chat.conversation import Conversation
from asap.chat.reply import ReplyBuilder


def term(conversation: Conversation, answer: ReplyBuilder, text: str) -> None:
    """The meaning of the longest word of the report that is in a question; else what the notes say."""
    found = [(name, means) for name, means in _terms() if re.search(rf"(?<!\w){re.escape(name)}(?!\w)", text, re.I)]
    if not found:
        principle(conversation, answer, text)
        return
    answer.add(max(found, key=lambda one: len(one[0]))[1])


@cache
def _terms() -> tuple[tuple[str, str], ...]:
    """Each name with what it means."""
    table = tomllib.loads(Path(__file__).with_name("terms.toml").read_text(encoding="utf-8"))
    return tuple((name, each["means"]) for each in table["term"] for name in each["names"])
