"""Text with what was read already taken out of it."""

from collections.abc import Sequence


def blanked(text: str, spans: Sequence[tuple[int, int]]) -> str:
    """The text with some spans replaced by spaces."""
    for start, end in spans:
        text = text[:start] + " " * (end - start) + text[end:]
    return text
