"""XPlane files as columns: every event of a line is decoded at once, field by field.

A protobuf message is a chain of fields whose lengths only its bytes tell. The events of a line are found one after the
other, and then all of them take one step from field to field together. Field numbers are those of ``xplane.proto``
(openxla/xla, third_party/tsl/tsl/profiler/protobuf).
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from asap.core.errors import ProfileError
from asap.core.text import plain
from asap.traces.readers.wire import BYTES, VARINT, Place, find, integer, text
from asap.traces.trace import Integers

Bytes = NDArray[np.uint8]

_PLANES = 1
_NAME, _LINES, _EVENT_METADATA, _STAT_METADATA = 2, 3, 4, 5
_LINE_NAME, _TIMESTAMP, _EVENTS = 2, 3, 4
_METADATA_ID, _OFFSET, _DURATION, _STATS = 1, 2, 3, 4
_STAT_ID, _UNSIGNED, _SIGNED = 1, 3, 4
_KEY, _VALUE = 1, 2
_PS_PER_NS = 1000
_SIZES = np.array([0, 8, 0, 0, 0, 4, 0, 0])
_KNOWN = np.array([True, True, True, False, False, True, False, False])


class Nested(NamedTuple):
    """Messages within messages: the row of their owner, and where they begin and end."""

    owner: Integers
    begin: Integers
    end: Integers


@dataclass(frozen=True, eq=False)
class Line:
    """Events of one line, ordered as recorded; times in nanoseconds."""

    name: str
    metadata: Integers
    start: Integers
    end: Integers
    correlation: Integers
    """The statistic ``correlation_id``, ``-1`` where there is none."""


@dataclass(frozen=True, eq=False)
class Plane:
    """One device or host. ``names`` gives the name of an event by its metadata."""

    name: str
    names: Mapping[int, str]
    lines: Sequence[Line]


def read_planes(path: Path, wanted: str) -> Iterator[Plane]:
    """Planes whose name starts with ``wanted``.

    Raises:
        ProfileError: the file cannot be read or is not a sequence of planes.
    """
    try:
        data = path.read_bytes()
        for place in find(data, (0, len(data)), _PLANES):
            name = text(data, place, _NAME)
            if name.startswith(wanted):
                yield _plane(name, data, place)
    except OSError as error:
        raise ProfileError(f"cannot be read: {error.strerror or error}", where=plain(path)) from error
    except (IndexError, KeyError, ValueError, OverflowError) as error:
        raise ProfileError("is damaged or cut off", where=plain(path)) from error


def _plane(name: str, data: bytes, place: Place) -> Plane:
    buffer = np.frombuffer(data, dtype=np.uint8)
    lines = list(find(data, place, _LINES))
    events = [list(find(data, line, _EVENTS)) for line in lines]
    begin, end = np.array([event for line in events for event in line], dtype=np.int64).reshape(-1, 2).T.copy()
    (metadata, offset, duration), stats = _decode(buffer, begin, end, (_METADATA_ID, _OFFSET, _DURATION), _STATS)
    wanted = [key for key, stat in _named(data, place, _STAT_METADATA) if stat == "correlation_id"]
    columns = (metadata, offset, offset + duration, _correlations(buffer, stats, len(begin), wanted))
    found, row = [], 0
    for line, mine in zip(lines, events, strict=True):
        found.append(_line(data, line, *(column[row : row + len(mine)] for column in columns)))
        row += len(mine)
    return Plane(name, dict(_named(data, place, _EVENT_METADATA)), found)


def _line(data: bytes, place: Place, metadata: Integers, start: Integers, end: Integers, correlation: Integers) -> Line:
    timestamp = integer(data, place, _TIMESTAMP)
    start, end = (timestamp + column // _PS_PER_NS for column in (start, end))
    return Line(text(data, place, _LINE_NAME), metadata, start, end, correlation)


def _correlations(buffer: Bytes, stats: Nested, events: int, wanted: Sequence[int]) -> Integers:
    found = np.full(events, -1, dtype=np.int64)
    if wanted:
        (key, unsigned, signed), _ = _decode(buffer, stats.begin, stats.end, (_STAT_ID, _UNSIGNED, _SIGNED), 0)
        mine = np.isin(key, wanted)
        found[stats.owner[mine]] = np.maximum(unsigned, signed)[mine]
    return found


def _named(data: bytes, place: Place, number: int) -> Iterator[tuple[int, str]]:
    for entry in find(data, place, number):
        value = next(find(data, entry, _VALUE), (0, 0))
        yield integer(data, entry, _KEY), text(data, value, _NAME)


def _decode(
    buffer: Bytes, begin: Integers, end: Integers, numbers: Sequence[int], nested: int
) -> tuple[list[Integers], Nested]:
    """Fields of many messages at once.

    Args:
        buffer: holds the messages.
        begin: where each begins.
        end: where each ends.
        numbers: of the integer fields that are wanted; zero where a message has none.
        nested: number of a field with messages.

    Returns:
        A column a number, and the nested messages.
    """
    columns = [np.zeros(len(begin), dtype=np.int64) for _ in numbers]
    found: list[tuple[Integers, Integers, Integers]] = []
    position = begin.copy()
    rows = np.flatnonzero(position < end)
    while len(rows):
        tag, at = _varints(buffer, position[rows])
        number, kind = tag >> 3, tag & 7
        if not _KNOWN[kind].all():
            raise KeyError
        sized = (kind == VARINT) | (kind == BYTES)
        value = np.zeros(len(rows), dtype=np.int64)
        value[sized], at[sized] = _varints(buffer, at[sized])
        for column, wanted in zip(columns, numbers, strict=True):
            here = (number == wanted) & (kind == VARINT)
            column[rows[here]] = value[here]
        inner = (number == nested) & (kind == BYTES)
        found.append((rows[inner], at[inner], at[inner] + value[inner]))
        at += np.where(kind == BYTES, value, _SIZES[kind])
        if np.any(at > end[rows]):
            raise IndexError
        position[rows] = at
        rows = rows[at < end[rows]]
    parts = zip(*found, strict=True) if found else [[begin[:0]]] * 3
    return columns, Nested(*(np.concatenate(list(part)) for part in parts))


def _varints(buffer: Bytes, position: Integers) -> tuple[Integers, Integers]:
    """The integers at these positions, and where they end."""
    byte = buffer[position].astype(np.int64)
    value, at = byte & 0x7F, position + 1
    more = np.flatnonzero(byte & 0x80)
    shift = 7
    while len(more):
        byte = buffer[at[more]].astype(np.int64)
        value[more] |= (byte & 0x7F) << shift
        at[more] += 1
        more = more[(byte & 0x80) > 0]
        shift += 7
    return value, at
