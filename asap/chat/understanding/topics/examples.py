"""Example phrasings of the topics, from ``intents.toml``."""

import tomllib
from functools import cache
from pathlib import Path

from asap.chat.understanding.topics.topics import Topic


@cache
def examples() -> tuple[tuple[Topic, str], ...]:
    """Each example with its topic."""
    table = tomllib.loads(Path(__file__).with_name("intents.toml").read_text(encoding="utf-8"))
    return tuple((Topic(topic), text) for topic, texts in table.items() for text in texts)
