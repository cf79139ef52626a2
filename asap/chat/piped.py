"""What is piped into a chat, as turns: each line is one, a training log is one as a whole."""

from collections.abc import Iterator
from io import BufferedReader

from asap.chat.understanding.statements.pasted_log import condensed, is_log

_AT_ONCE = 1 << 16
"""Bytes that a pipe holds: lines that are there together are read together."""


def piped_turns(stream: BufferedReader) -> Iterator[str]:
    """The lines of a pipe as they come; from the first part that is a training log on, all that follows is one turn."""
    unfinished = b""
    while part := stream.read1(_AT_ONCE):
        text = unfinished + part
        if is_log(_lines(text)):
            yield condensed(_lines(text + stream.read()))
            return
        complete, ended, unfinished = text.rpartition(b"\n")
        yield from filter(str.strip, _lines(complete + ended))
    yield from filter(str.strip, _lines(unfinished))


def _lines(text: bytes) -> list[str]:
    return text.decode("utf-8", "replace").splitlines()
