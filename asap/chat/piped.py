"""What is piped into a chat, as turns: one line in, one answer out."""

from collections.abc import Iterator
from io import BufferedReader


def piped_turns(stream: BufferedReader) -> Iterator[str]:
    """The lines of a pipe as they come."""
    for line in stream:
        text = line.decode("utf-8", "replace").strip()
        if text:
            yield text
