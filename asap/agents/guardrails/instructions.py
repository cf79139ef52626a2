"""Whether a model repeats the instructions of an agent."""

import re
from collections.abc import Sequence

REPEATED_WORDS = 8
"""This many words of an agent's instructions in a row count as repeating them."""


def repeats_instructions(prose: str, instructions: Sequence[str]) -> bool:
    """Whether eight words in a row stand in an agent's instructions as well."""
    runs = _runs(prose)
    return any(runs & _runs(text) for text in instructions)


def _runs(text: str) -> set[tuple[str, ...]]:
    """All runs of so many words."""
    words = re.findall(r"\w+", text.lower())
    return {tuple(words[at : at + REPEATED_WORDS]) for at in range(len(words) - REPEATED_WORDS + 1)}
