"""Many protobuf messages at once: all of them take one step from field to field together.

An integer is read as the eight bytes that begin with it. Seven bits of a byte count and the eighth says whether another
one follows, so the first byte without it is the last, and three shifts close the gaps between the groups of seven.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.lib.stride_tricks import as_strided
from numpy.typing import NDArray

from asap.profiles.xplane.wire import BYTES, VARINT, Data, Place, fields, release

Integers = NDArray[np.int64]
Words = NDArray[np.uint64]

_SIZES = np.array([0, 8, 0, 0, 0, 4, 0, 0])
_KNOWN = np.array([True, True, True, False, False, True, False, False])
_WIDTH = 8
_WINDOW = 1 << 16
_MORE_FOLLOWS = 0x80
UNTOLD = -1
_MORE = np.uint64(0x8080808080808080)
_CLOSING = (
    (0x007F007F007F007F, 0x7F007F007F007F00, 1),
    (0x00003FFF00003FFF, 0x3FFF00003FFF0000, 2),
    (0x000000000FFFFFFF, 0x0FFFFFFF00000000, 4),
)


class Nested(NamedTuple):
    """Messages within messages: the row of their owner, and where they begin and end."""

    owner: Integers
    begin: Integers
    end: Integers


class Decoded(NamedTuple):
    """A column for each field that was wanted, whether each message has it, and the nested messages."""

    columns: Sequence[Integers]
    known: Sequence[NDArray[np.bool_]]
    nested: Nested


class Buffer:
    """Bytes, as the words of eight bytes that begin at each of them."""

    def __init__(self, data: bytes):
        self.data = data
        self.bytes = np.frombuffer(data + bytes(2 * _WIDTH), dtype=np.uint8)
        self.words: Words = as_strided(self.bytes[:_WIDTH].view("<u8"), shape=(len(data) + _WIDTH,), strides=(1,))


def decode(buffer: Buffer, begin: Integers, end: Integers, numbers: Sequence[int], nested: int = 0) -> Decoded:
    """Fields of many messages at once.

    Args:
        buffer: holds the messages.
        begin: where each begins.
        end: where each ends.
        numbers: of the integer fields that are wanted; zero where a message has none. The last of a field counts.
        nested: number of a field with messages.

    Raises:
        IndexError, KeyError: the bytes are not messages.
    """
    columns = [np.zeros(len(begin), dtype=np.int64) for _ in numbers]
    known = [np.zeros(len(begin), dtype=bool) for _ in numbers]
    found: list[tuple[Integers, Integers, Integers]] = []
    rows = np.flatnonzero(begin < end)
    position, limit = begin[rows], end[rows]
    while len(rows):
        tag, at = buffer.bytes[position], position + 1
        if (tag >= _MORE_FOLLOWS).any():
            tag, at = _varints(buffer, position)
        if not _KNOWN[tag & 7].all():
            raise KeyError
        same = bool((tag == tag[0]).all())
        for each in [int(tag[0])] if same else distinct(tag).tolist():
            mine = slice(None) if same else np.flatnonzero(tag == each)
            here, number = at[mine], each >> 3
            if each & 7 == VARINT:
                value, after = _varints(buffer, here)
                if number in numbers:
                    columns[numbers.index(number)][rows[mine]] = value
                    known[numbers.index(number)][rows[mine]] = True
            elif each & 7 == BYTES:
                value, inside = _varints(buffer, here)
                after = inside + value
                if np.any(value < 0) or np.any(after > limit[mine]):
                    raise IndexError
                if number == nested:
                    found.append((rows[mine], inside, after))
            else:
                after = here + _SIZES[each & 7]
            at[mine] = after
        if np.any(at > limit):
            raise IndexError
        going = at < limit
        if going.all():
            position = at
        else:
            rows, position, limit = rows[going], at[going], limit[going]
    parts = zip(*found, strict=True) if found else [[begin[:0]]] * 3
    return Decoded(columns, known, Nested(*(np.concatenate(list(part)) for part in parts)))


def headers(data: Data, place: Place, number: int) -> Integers:
    """Where the fields of a number begin, for a message that holds many of them: the tag, a length, the field.

    Args:
        data: holds the message.
        place: of the message.
        number: of the field, below 16; its type has to be bytes or a message.

    Raises:
        IndexError, KeyError: the bytes are not a message.
    """
    every = np.frombuffer(data, dtype=np.uint8)
    wanted = number << 3 | BYTES
    found: list[Integers] = []
    position, end = place
    while position < end:
        window = Place(position, min(position + _WINDOW, end))
        begins, position = _in_a_row(every[window.begin : window.end], wanted)
        found.append(begins + window.begin)
        position += window.begin
        release(data, Place(window.begin, position))
        if position < end and not len(begins):
            _, _, _, (_, after) = next(fields(data, Place(position, end)))
            found += [np.array([position])] if every[position] == wanted else []
            position = after
    if position > end:
        raise IndexError
    return np.concatenate(found) if found else np.empty(0, dtype=np.int64)


def _in_a_row(window: NDArray[np.uint8], tag: int) -> tuple[Integers, int]:
    """Where the fields with a tag begin that follow each other from the first byte on, and where the last of them ends.

    Each byte that looks like the tag says where the next field would be. The way from field to field doubles with each
    pass. A length of more than two bytes ends it.
    """
    looks = np.flatnonzero(window[:-2] == tag)
    first, second = (window.take(looks + away).astype(np.int64) for away in (1, 2))
    known = (first < _MORE_FOLLOWS) | (second < _MORE_FOLLOWS)
    looks, first, second = looks[known], first[known], second[known]
    after = looks + np.where(first < _MORE_FOLLOWS, first + 2, (first & 0x7F | second << 7) + 3)
    if not len(looks) or looks[0]:
        return looks[:0], 0
    stop = len(looks)
    rank = np.full(len(window) + 1, stop)
    rank[looks] = np.arange(stop)
    jump = np.append(rank.take(np.minimum(after, len(window))), stop)
    way = np.zeros(1, dtype=np.int64)
    while way[-1] != stop:
        way = np.concatenate([way, jump.take(way)])
        jump = jump.take(jump)
    way = way[way != stop]
    return looks.take(way), int(after[way[-1]])


def contents(buffer: Buffer, headers: Integers) -> tuple[Integers, Integers]:
    """Where the messages begin and end that these headers announce: a tag of one byte, and a length."""
    length, begin = _varints(buffer, headers + 1)
    return begin, begin + length


def first_integers(buffer: Buffer, begin: Integers, number: int) -> tuple[Integers, Integers]:
    """The integer with which each message begins, and where the rest does.

    Where a message begins with another field than that of this number: ``UNTOLD``, and its own begin.
    """
    told = buffer.bytes[begin] == number << 3 | VARINT
    value, after = _varints(buffer, begin + 1)
    return np.where(told, value, UNTOLD), np.where(told, after, begin)


def distinct(values: NDArray[Any]) -> NDArray[Any]:
    """The values without repetition, in their order."""
    ordered = np.sort(values)
    return ordered[np.append(True, ordered[1:] != ordered[:-1])] if len(ordered) else ordered


def _varints(buffer: Buffer, position: Integers) -> tuple[Integers, Integers]:
    """The integers at these positions, and where they end."""
    first = buffer.bytes[position]
    if not (first >= _MORE_FOLLOWS).any():
        return first.astype(np.int64), position + 1
    word = buffer.words[position]
    stops = ~word & _MORE
    below = (stops & (~stops + np.uint64(1))) - np.uint64(1)
    value = word & below & ~_MORE
    longest = int(below.max()).bit_length()
    for low, high, shift in _CLOSING:
        if longest > 8 * shift:
            value = (value & np.uint64(low)) | ((value & np.uint64(high)) >> np.uint64(shift))
    after = position + (np.bitwise_count(below).astype(np.int64) >> 3) + 1
    if len(long := np.flatnonzero(stops == 0)):
        value[long], after[long] = _long_varints(buffer, position[long], value[long])
    return value.view(np.int64), after


def _long_varints(buffer: Buffer, position: Integers, value: Words) -> tuple[Words, Integers]:
    """Integers of nine or ten bytes; ``value`` holds the 56 bits of the first eight."""
    if np.any(position + _WIDTH >= len(buffer.words)):
        raise IndexError
    rest = buffer.words[position + _WIDTH]
    ninth, tenth = rest & np.uint64(0xFF), rest >> np.uint64(8) & np.uint64(0xFF)
    more = (ninth & np.uint64(0x80)) > 0
    if np.any(more & (tenth > 0x7F)):
        raise IndexError
    value = value | ((ninth & np.uint64(0x7F)) << np.uint64(56)) | np.where(more, tenth << np.uint64(63), np.uint64(0))
    return value, position + 9 + more.astype(np.int64)


def own_times(start: Integers, end: Integers) -> Integers:
    """Length of each span without the spans directly inside it: those that it is the nearest before to hold whole."""
    if np.any(np.diff(start) < 0):
        order, own = np.lexsort((-end, start)), np.empty_like(start)
        own[order] = own_times(start[order], end[order])
        return own
    inner = np.flatnonzero(start[1:] < np.maximum.accumulate(end)[:-1]) + 1
    own = end - start
    if len(inner):
        around = _containers(end, inner)
        inside = around >= 0
        np.subtract.at(own, around[inside], (end - start)[inner[inside]])
    return own


def alike(*columns: Integers | NDArray[np.bool_]) -> tuple[Integers, Integers]:
    """The rows, those together that have the same values in all columns, and where each lot of them begins."""
    order = np.lexsort(columns)
    differs = [np.diff(column[order]) != 0 for column in columns]
    return order, np.flatnonzero(np.append(len(order) > 0, np.logical_or.reduce(differs)))


def union(start: Integers, end: Integers) -> tuple[Integers, Integers]:
    """The spans of the union, in their order."""
    if not len(start):
        return start, end
    order = np.argsort(start, kind="stable")
    begins, reached = start[order], np.maximum.accumulate(end[order])
    opens = np.flatnonzero(np.append(True, begins[1:] > reached[:-1]))
    return begins[opens], reached[np.append(opens[1:] - 1, len(reached) - 1)]


def covered(start: Integers, end: Integers) -> int:
    """Length of the union."""
    begins, ends = union(start, end)
    return int((ends - begins).sum())


def uncovered(start: Integers, end: Integers, by_start: Integers, by_end: Integers) -> Integers:
    """Of each span, the time outside the union of others."""
    if not len(by_start):
        return end - start
    begins, ends = union(by_start, by_end)
    total = np.concatenate([[0], np.cumsum(ends - begins)])

    def until(moment: Integers) -> Integers:
        last = np.searchsorted(begins, moment, side="right") - 1
        inside = np.clip(moment, begins[last], ends[last]) - begins[last]
        return np.where(last >= 0, total[last] + inside, 0)

    return end - start - (until(end) - until(start))


def _containers(end: Integers, inner: Integers) -> Integers:
    """For each of the ``inner`` spans, the nearest one before it that ends no earlier; ``-1`` if there is none.

    All in between end earlier, so what is nearest for one of them is the next to try: the way doubles with each pass.
    """
    around = np.full(len(end), -1, dtype=np.int64)
    around[inner] = inner - 1
    unsure = inner
    while len(unsure):
        unsure = unsure[(around[unsure] >= 0) & (end[around[unsure]] < end[unsure])]
        around[unsure] = around[around[unsure]]
    return around[inner]
