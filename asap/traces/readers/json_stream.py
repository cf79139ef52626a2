"""Chrome-format JSON in slices: no more than a few megabytes of it are in memory at a time.

A slice ends after a whole event. Where that is, only a parser can say, so the last places that look like it are tried:
a slice that ends inside an event, a string or a nested list does not decode.
"""

import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, BinaryIO, Generic, TypeVar, cast

import msgspec
from isal import igzip_threaded
from isal.isal_zlib import IsalError

from asap.core.errors import BadInputError
from asap.core.text import plain
from asap.traces.readers.unused_events import UnusedEvents

SLICE = 1 << 21
ATTEMPTS = 4
NEAR = 1 << 14
LIMIT = 256 << 20
_EVENTS = "traceEvents"
_BETWEEN = re.compile(rb"\}\s*,\s*(?=\{)")
_BEGIN = re.compile(rb'"traceEvents"\s*:\s*\[')
_NOT_A_NUMBER = re.compile(rb":\s*-?(?:NaN|nan|Infinity|inf)\b")
_CONTROLS_TO_SPACES = bytes.maketrans(bytes(range(32)), b" " * 32)
_GZIP = b"\x1f\x8b"
_DAMAGED = (EOFError, OSError, cast(type[Exception], IsalError))
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"

Event = TypeVar("Event")


class EventStream(Generic[Event]):
    """The events of a file; ``fields`` holds its other top-level fields, once all events have been read.

    Args:
        path: of the file, compressed or not.
        event: what an event is decoded to.
        unused: categories of events that may be left out, each with what the names of those events begin with.
    """

    def __init__(self, path: Path, event: type[Event], unused: Sequence[tuple[bytes, bytes]] = ()):
        self.path = path
        self.fields: dict[str, Any] = {}
        self._categories = unused
        self._decoder = msgspec.json.Decoder(list[event])
        self._read = 0

    def slices(self) -> Iterator[tuple[list[Event], bytes]]:
        """Events, and the JSON list that they were read from.

        Raises:
            BadInputError: the file cannot be read, is cut off or is not a trace.
        """
        try:
            with _open(self.path) as file:
                yield from self._slices(file)
        except _DAMAGED as error:
            raise self._bad(f"is cut off or damaged after {self._read} events: {error}") from error
        except msgspec.ValidationError as error:
            raise self._bad(f"has an event of an unknown form after event {self._read}: {error}") from error
        except RecursionError as error:
            raise self._bad(f"is nested too deeply after {self._read} events") from error

    def _slices(self, file: BinaryIO) -> Iterator[tuple[list[Event], bytes]]:
        text, is_list = self._skip_header(file)
        size, unused = SLICE, None
        while more := file.read(size):
            text += more
            unused = unused or UnusedEvents.of(text, self._categories)
            if found := self._decode_most(text, unused):
                events, end, whole = found
                yield events, whole
                text, size = text[end:].lstrip(b" \t\r\n,"), SLICE
            elif len(text) < LIMIT:
                size = len(text)
            else:
                raise self._bad(f"is damaged after {self._read} events")
        unused = unused or UnusedEvents.of(text, self._categories)
        yield self._decode_rest(unused.left_out(text, len(text))[0], is_list)

    def _skip_header(self, file: BinaryIO) -> tuple[bytes, bool]:
        text, searched = b"", 0
        while more := file.read(SLICE):
            text += more.removeprefix(_BYTE_ORDER_MARK)
            if text.lstrip().startswith(b"["):
                return text.lstrip()[1:], True
            for found in _BEGIN.finditer(text, searched):
                try:
                    self.fields |= msgspec.json.decode(_clean(text[: found.end()]) + b"]}")
                except msgspec.DecodeError:
                    continue
                del self.fields[_EVENTS]
                return text[found.end() :], False
            if len(text) > LIMIT:
                break
            searched = max(0, len(text) - len(_EVENTS) - SLICE)
        raise self._bad("is not a Chrome-format trace: it has no list of traceEvents")

    def _decode_most(self, text: bytes, unused: UnusedEvents) -> tuple[list[Event], int, bytes] | None:
        for end in _last_ends(text):
            try:
                used, count = unused.left_out(text, end)
                whole = b"[%b]" % used
                events = self._decode(whole)
                self._read += count
                return events, end, whole
            except msgspec.ValidationError:
                raise
            except msgspec.DecodeError:
                continue
        return None

    def _decode_rest(self, text: bytes, is_list: bool) -> tuple[list[Event], bytes]:
        try:
            if is_list:
                return self._decode(b"[" + text), b"[" + text
            rest = _clean(b'{"%b":[' % _EVENTS.encode() + text)
            fields = msgspec.json.decode(rest, type=dict[str, msgspec.Raw])
            events = bytes(fields.pop(_EVENTS))
            self.fields |= {name: msgspec.json.decode(value) for name, value in fields.items()}
            return self._decode(events), events
        except msgspec.ValidationError:
            raise
        except (msgspec.DecodeError, RecursionError) as error:
            message = f"is cut off or damaged after {self._read} events"
            raise self._bad(message, "the recording or the copy did not finish") from error

    def _decode(self, text: bytes) -> list[Event]:
        try:
            events = self._decoder.decode(text)
        except msgspec.ValidationError:
            raise
        except (msgspec.DecodeError, UnicodeDecodeError):
            events = self._decoder.decode(_clean(text))
        self._read += len(events)
        return events

    def _bad(self, message: str, hint: str | None = None) -> BadInputError:
        return BadInputError(plain(message, 300), where=plain(self.path), hint=hint)


def _open(path: Path) -> BinaryIO:
    with path.open("rb") as file:
        compressed = file.read(len(_GZIP)) == _GZIP
    return cast(BinaryIO, igzip_threaded.open(path)) if compressed else path.open("rb")


def _last_ends(text: bytes) -> list[int]:
    """Places near the end that look as if an event ended there, the last one first."""
    for begin in (max(len(text) - NEAR, len(text) // 2), len(text) // 2):
        ends = [found.start() + 1 for found in _BETWEEN.finditer(text, begin)]
        if len(ends) >= ATTEMPTS:
            break
    return ends[: -ATTEMPTS - 1 : -1]


def _clean(text: bytes) -> bytes:
    """What msgspec does not read and other tools write: control characters, bytes of other encodings, no numbers."""
    text = text.decode(errors="replace").encode()
    return _NOT_A_NUMBER.sub(b":null", text.translate(_CONTROLS_TO_SPACES))
