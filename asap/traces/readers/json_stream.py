"""Chrome-format JSON in slices: no more than a few megabytes of it are in memory at a time.

A slice ends after a whole event. Where that is, only a parser can say, so the last places that look like it are tried:
a slice that ends inside an event, a string or a nested list does not decode.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO, Generic, TypeVar, cast

import msgspec
import numpy as np
from isal import igzip_threaded
from isal.isal_zlib import IsalError
from numpy.typing import NDArray

from asap.core.errors import BadInputError
from asap.core.text import plain
from asap.traces.trace import Integers

_LAYOUT = re.compile(rb'(\}\s*,\s*)(\{\s*"ph"\s*:\s*")X("\s*,\s*"cat"\s*:\s*")[^"\\]*("\s*,\s*"name"\s*:\s*")')
_OPEN, _CLOSED, _QUOTE, _COMPLETE = b'{}"X'
_DEEPER = np.zeros(256, dtype=np.int64)
_DEEPER[[_OPEN, _CLOSED]] = 1, -1
_WORD = 8
"""Bytes of a category and what follows it that tell most categories apart."""


@dataclass(frozen=True)
class UnusedEvents:
    """Events of a file that can be left out: those of other phases than ``X``, and of some categories.

    Attributes:
        before: how the file lays out what stands between two events, up to the phase of the second; empty if its
            layout is another than phase, category, name.
        category: where the category begins, counted like ``beginnings``.
        beginnings: of the events of those categories, from ``before`` on.
    """

    before: bytes = b""
    category: int = 0
    beginnings: tuple[bytes, ...] = ()

    @classmethod
    def of(cls, text: bytes, categories: Sequence[tuple[bytes, bytes]]) -> "UnusedEvents":
        """Those of a file.

        Args:
            text: its first events.
            categories: that are left out, each with what the names of those events begin with.
        """
        if not categories or not (found := _LAYOUT.search(text)):
            return cls()
        between, opening, to_category, to_name = found.groups()
        before = between + opening
        complete = before + b"X" + to_category
        return cls(before, len(complete), tuple(complete + category + to_name + name for category, name in categories))

    def left_out(self, text: bytes, end: int) -> tuple[bytes, int]:
        """The other events up to ``end`` of a text, where one ends, and how many were left out."""
        if not self.before or b"\0" in text:
            return text[:end], 0
        characters = np.frombuffer(text, dtype=np.uint8, count=end)
        braces = np.flatnonzero(characters >= _OPEN)
        kinds = characters[braces]
        opening = np.flatnonzero(kinds == _OPEN)
        opened = braces[opening]
        to_brace = self.before.index(_OPEN)
        begins = np.flatnonzero(_has(text, opened - to_brace, self.before))
        if len(begins) < 2:
            return text[:end], 0
        start = opened[begins]
        whole = _are_single(np.cumsum(_DEEPER[kinds]), opening[begins])
        unused = whole & self._unused(text, characters, start[:-1] - to_brace)
        return _without(text, start, unused, end), int(unused.sum())

    def _unused(self, text: bytes, characters: NDArray[np.uint8], start: NDArray[np.int64]) -> NDArray[np.bool_]:
        phase = start + len(self.before)
        unused = (characters[phase] != _COMPLETE) & (characters[phase + 1] == _QUOTE)
        words = _windows(text, _WORD)
        categories = words[np.minimum(start + self.category, len(words) - 1)].view(np.uint64)
        for beginning in self.beginnings:
            rows = np.flatnonzero(categories == np.frombuffer(beginning, np.uint64, 1, self.category))
            unused[rows] |= _has(text, start[rows], beginning)
        return unused


def _are_single(depth: Integers, begin: Integers) -> NDArray[np.bool_]:
    """Whether from each beginning to the next there is one event: its depth is left once, at the end.

    Args:
        depth: after each brace.
        begin: indices of the braces at which events begin.
    """
    inside = np.repeat(depth[begin[:-1]], np.diff(begin))
    left = np.add.reduceat(depth[begin[0] : begin[-1]] < inside, begin[:-1] - begin[0])
    return (left == 1) & (depth[begin[1:] - 1] < depth[begin[:-1]])


def _has(text: bytes, start: NDArray[np.int64], what: bytes) -> NDArray[np.bool_]:
    """Where the text goes on with ``what``."""
    found = np.zeros(len(start), dtype=bool)
    inside = np.flatnonzero((start >= 0) & (start + len(what) <= len(text)))
    if len(inside):
        found[inside] = _windows(text, len(what))[start[inside]] == what
    return found


def _windows(text: bytes, length: int) -> NDArray[np.bytes_]:
    """The ``length`` bytes from each place on."""
    return np.ndarray((len(text) - length + 1,), dtype=f"S{length}", buffer=text, strides=(1,))


def _without(text: bytes, start: NDArray[np.int64], unused: NDArray[np.bool_], end: int) -> bytes:
    """The text up to ``end`` without the events that begin at ``start`` and are unused."""
    edges = np.flatnonzero(np.diff(np.concatenate([[False], unused, [False]])))
    bounds = [0, *start[edges].tolist(), end]
    return b"".join([text[begin:until] for begin, until in zip(bounds[::2], bounds[1::2], strict=True)])


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
        hint = "give what export_chrome_trace of torch.profiler writes; its execution traces have no times of a device"
        raise self._bad("is not a Chrome-format trace: it has no list of traceEvents", hint)

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
            rest = b'{"%b":[' % _EVENTS.encode() + text
            try:
                fields = msgspec.json.decode(rest, type=dict[str, msgspec.Raw])
            except (msgspec.DecodeError, UnicodeDecodeError):
                fields = msgspec.json.decode(_clean(rest), type=dict[str, msgspec.Raw])
            events = bytes(fields.pop(_EVENTS))
            self.fields |= {name: msgspec.json.decode(_clean(bytes(value))) for name, value in fields.items()}
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
