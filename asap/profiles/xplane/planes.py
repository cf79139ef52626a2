"""The planes of an XPlane file and their lines. Events are decoded when they are asked for, a line at a time.

Field numbers are those of ``xplane.proto`` (openxla/xla, third_party/tsl/tsl/profiler/protobuf).
"""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, replace
from functools import cached_property
from mmap import ACCESS_READ, mmap
from pathlib import Path
from typing import NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from asap.core.errors import ProfileError
from asap.core.text import plain
from asap.profiles.xplane.columns import (
    UNTOLD,
    Buffer,
    Integers,
    Nested,
    contents,
    decode,
    first_integers,
    headers,
)
from asap.profiles.xplane.wire import BYTES, DOUBLE, Data, Place, double, fields, release, signed, text

Value = int | float | str | bytes
_Wanted = TypeVar("_Wanted", float, int, str)


def stat(stats: Mapping[str, Value], name: str, otherwise: _Wanted) -> _Wanted:
    """A statistic; what it is otherwise where there is none, or one of another type."""
    value = stats.get(name)
    known = int | float if isinstance(otherwise, float) else type(otherwise)
    return type(otherwise)(value) if isinstance(value, known) else otherwise  # pyright: ignore[reportArgumentType]


_PLANES = 1
_NAME, _LINES, _EVENT_METADATA, _STAT_METADATA, _PLANE_STATS = 2, 3, 4, 5, 6
_LINE_NAME, _TIMESTAMP, _EVENTS = 2, 3, 4
_METADATA_ID, _OFFSET, _DURATION, _STATS, _OCCURRENCES = 1, 2, 3, 4, 5
_DISPLAY_NAME, _METADATA_STATS = 4, 5
_STAT_ID, _UNSIGNED, _SIGNED, _STRING, _REFERENCE = 1, 3, 4, 5, 7
_KEY, _VALUE = 1, 2
PS_PER_NS = 1000
_PIECE = 1 << 13


class Column(NamedTuple):
    """A statistic of the events of a line: which of them have it, and its value; :meth:`Plane.text` resolves a text."""

    known: NDArray[np.bool_]
    value: Integers


@dataclass(frozen=True, eq=False)
class Events:
    """Events of one line in the order of the file; offsets (from ``timestamp_ns``) and durations in picoseconds."""

    timestamp_ns: int
    metadata: Integers
    offset: Integers
    duration: Integers
    stats: Mapping[str, Column]

    def __len__(self) -> int:
        return len(self.metadata)

    def column(self, name: str) -> Column:
        """A statistic; where the file has none of this name, no event has it."""
        nothing = np.zeros(len(self), dtype=np.int64)
        return self.stats.get(name) or Column(nothing.astype(np.bool_), nothing)

    def since(self, moment_ns: int) -> "Events":
        """Those that began at a moment or later."""
        if not moment_ns:
            return self
        rows = np.flatnonzero(self.start_ns >= moment_ns)
        stats = {name: Column(known[rows], value[rows]) for name, (known, value) in self.stats.items()}
        return Events(self.timestamp_ns, self.metadata[rows], self.offset[rows], self.duration[rows], stats)

    @property
    def start_ns(self) -> Integers:
        """When each began."""
        return self.timestamp_ns + self.offset // PS_PER_NS

    @property
    def end_ns(self) -> Integers:
        """When each ended."""
        return self.timestamp_ns + (self.offset + self.duration) // PS_PER_NS


@dataclass(frozen=True)
class Description:
    """What the events of one kind share."""

    name: str
    display_name: str
    stats: Mapping[str, Value]


class Line:
    """A line of a plane: the steps, the operations, a stream or a thread."""

    def __init__(self, plane: "Plane", data: Data, place: Place):
        self.plane, self._data, self._place = plane, data, place
        self.name, self.timestamp_ns, self.is_empty = "", 0, True
        self._read: Events | None = None
        for number, _, value, inside in fields(data, place):
            if number == _LINE_NAME:
                self.name = text(data, inside)
            elif number == _TIMESTAMP:
                self.timestamp_ns = signed(value)
            elif number == _EVENTS:
                self.is_empty = False
                break

    def events(self, stats: Sequence[str] = ()) -> Events:
        """Decode the events, with these of their integer and text statistics; without any, once.

        What began before :attr:`Plane.since_ns` is left out.

        Raises:
            ProfileError: the file is damaged.
        """
        events = self._read
        if events is None or stats:
            with self.plane.reading():
                events = self._events(stats)
            self._read = replace(events, stats={})
        return events.since(self.plane.since_ns)

    def _events(self, stats: Sequence[str]) -> Events:
        """Decode them in pieces whose columns stay in the cache of the processor."""
        data = self._data
        found = headers(data, self._place, _EVENTS)
        numbers = [(name, self.plane.stat_ids[name]) for name in stats if name in self.plane.stat_ids]
        metadata, offset, duration = (np.zeros(len(found), dtype=np.int64) for _ in range(3))
        columns = {name: Column(np.zeros(len(found), dtype=np.bool_), np.zeros_like(metadata)) for name, _ in numbers}
        for first in range(0, len(found), _PIECE):
            last = min(first + _PIECE, len(found))
            place = Place(int(found[first]), int(found[last]) if last < len(found) else self._place.end)
            buffer = Buffer(data[place.begin : place.end])
            begin, end = contents(buffer, found[first:last] - place.begin)
            (metadata[first:last], offset[first:last], duration[first:last]), _, nested = decode(
                buffer, begin, end, (_METADATA_ID, _OFFSET, _DURATION), _STATS if numbers else 0
            )
            if numbers:
                piece = {name: Column(known[first:last], value[first:last]) for name, (known, value) in columns.items()}
                self._statistics(buffer, nested, numbers, piece)
            release(data, place)
        return Events(self.timestamp_ns, metadata, offset, duration, columns)

    def _statistics(
        self, buffer: Buffer, stats: Nested, wanted: Sequence[tuple[str, int]], columns: Mapping[str, Column]
    ) -> None:
        """Fill the columns of these statistics; writers put the number of a statistic first."""
        first, rest = first_integers(buffer, stats.begin, _STAT_ID)
        kept = np.flatnonzero(np.isin(first, [UNTOLD, *(number for _, number in wanted)]))
        owner = stats.owner[kept]
        (key, unsigned, integer, reference), (is_key, is_unsigned, is_integer, _), texts = decode(
            buffer, rest[kept], stats.end[kept], (_STAT_ID, _UNSIGNED, _SIGNED, _REFERENCE), _STRING
        )
        key = np.where(is_key, key, first[kept])
        value = np.where(is_unsigned, unsigned, np.where(is_integer, integer, reference))
        kept = np.isin(key[texts.owner], [number for _, number in wanted])
        for row, begin, end in zip(*(column[kept].tolist() for column in texts), strict=True):
            value[row] = self.plane.numbered(buffer.data[begin:end].decode(errors="replace"))
        for name, number in wanted:
            mine = np.flatnonzero(key == number)
            columns[name].known[owner[mine]] = True
            columns[name].value[owner[mine]] = value[mine]


Shared = dict[tuple[tuple[int, str], ...], dict[bytes, Description]]


class Plane:
    """One device or host; events are left out that began before ``since_ns``."""

    def __init__(self, path: Path, data: Data, place: Place, shared: Shared):
        self._path, self._data, self._shared = path, data, shared
        self._places: dict[int, list[Place]] = defaultdict(list)
        self._texts: list[str] = []
        self._numbers: dict[str, int] = {}
        self.name, self.since_ns = "", 0
        for number, kind, _, inside in fields(data, place):
            if number == _NAME:
                self.name = text(data, inside)
            elif kind == BYTES:
                self._places[number].append(inside)

    @cached_property
    def lines(self) -> Sequence[Line]:
        """Its lines."""
        with self.reading():
            return [Line(self, self._data, place) for place in self._places[_LINES]]

    @cached_property
    def stat_ids(self) -> Mapping[str, int]:
        """The number of each statistic by its name."""
        return {name: key for key, name in self._stat_names.items()}

    @cached_property
    def stats(self) -> Mapping[str, Value]:
        """Facts of the device."""
        with self.reading():
            return dict(self._stat(self._data, place) for place in self._places[_PLANE_STATS])

    @cached_property
    def names(self) -> Mapping[int, str]:
        """Name of an event by its metadata."""
        with self.reading():
            return {key: self._named(place) for key, place in self._descriptions.items()}

    def description(self, metadata: int) -> Description:
        """What events share that have this metadata.

        Raises:
            ProfileError: the file is damaged.
        """
        with self.reading():
            place = self._descriptions.get(metadata, Place(0, 0))
            data = self._data[place.begin : place.end]
            if data not in self._alike:
                self._alike[data] = self._description(data)
            return self._alike[data]

    def _description(self, data: bytes) -> Description:
        name, display, stats = "", "", {}
        for number, _, _, inside in fields(data, Place(0, len(data))):
            if number == _NAME:
                name = text(data, inside)
            elif number == _DISPLAY_NAME:
                display = text(data, inside)
            elif number == _METADATA_STATS:
                key, value = self._stat(data, inside)
                stats[key] = value
        return Description(name, display, stats)

    def text(self, number: int) -> str:
        """The text that a value stands for: a reference of the file, or one of our numbers, which are below zero."""
        return self._texts[~number] if number < 0 else self._stat_names.get(number, "")

    def numbered(self, found: str) -> int:
        """The number that stands for a text."""
        number = self._numbers.setdefault(found, ~len(self._texts))
        if ~number == len(self._texts):
            self._texts.append(found)
        return number

    def reading(self) -> AbstractContextManager[None]:
        """A context in which damage becomes a :class:`ProfileError`."""
        return _refusing(self._path)

    @cached_property
    def _stat_names(self) -> Mapping[int, str]:
        with self.reading():
            return {key: self._named(place) for key, place in self._entries(_STAT_METADATA)}

    @cached_property
    def _alike(self) -> dict[bytes, Description]:
        """Descriptions by their bytes, of all planes that number their statistics alike: devices run one program."""
        return self._shared.setdefault(tuple(sorted(self._stat_names.items())), {})

    @cached_property
    def _descriptions(self) -> Mapping[int, Place]:
        return dict(self._entries(_EVENT_METADATA))

    def _entries(self, number: int) -> Iterator[tuple[int, Place]]:
        for entry in self._places[number]:
            key, value = 0, Place(0, 0)
            for part, _, found, inside in fields(self._data, entry):
                if part == _KEY:
                    key = signed(found)
                elif part == _VALUE:
                    value = inside
            yield key, value

    def _named(self, place: Place) -> str:
        found = (text(self._data, inside) for number, _, _, inside in fields(self._data, place) if number == _NAME)
        return next(found, "")

    def _stat(self, data: Data, place: Place) -> tuple[str, Value]:
        key, value = 0, b""
        for number, kind, found, inside in fields(data, place):
            if number == _STAT_ID:
                key = found
            elif kind == DOUBLE:
                value = double(data, inside)
            elif number == _REFERENCE:
                value = self.text(found)
            elif number == _STRING:
                value = text(data, inside)
            elif kind == BYTES:
                value = data[inside.begin : inside.end]
            else:
                value = signed(found) if number == _SIGNED else found
        return self.text(key), value


@contextmanager
def _refusing(path: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise ProfileError(f"cannot be read: {error.strerror or error}", where=plain(path)) from error
    except (IndexError, KeyError, ValueError, OverflowError, RecursionError) as error:
        raise ProfileError("is damaged or cut off", where=plain(path)) from error


def read_planes(path: Path, wanted: str = "") -> list[Plane]:
    """Planes whose name starts with ``wanted``.

    Raises:
        ProfileError: the file cannot be read or is not a sequence of planes.
    """
    with _refusing(path):
        with path.open("rb") as file:
            data = mmap(file.fileno(), 0, access=ACCESS_READ)
        shared: Shared = {}
        planes = (inside for number, _, _, inside in fields(data, Place(0, len(data))) if number == _PLANES)
        read = [Plane(path, data, place, shared) for place in planes]
        return [plane for plane in read if plane.name.startswith(wanted)]
