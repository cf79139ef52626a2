"""Protobuf messages, one by one: a field carries its length, so what is not wanted is stepped over.

Encoding: https://protobuf.dev/programming-guides/encoding/.
"""

from collections.abc import Iterator
from mmap import ALLOCATIONGRANULARITY, MADV_DONTNEED, mmap
from struct import unpack_from
from typing import NamedTuple

VARINT, DOUBLE, BYTES = 0, 1, 2
FIXED = {DOUBLE: 8, 5: 4}

Data = bytes | mmap


class Place(NamedTuple):
    """Where a message begins and ends."""

    begin: int
    end: int


Field = tuple[int, int, int, Place]
"""One field: its number and kind; its integer, or where its bytes are."""


def fields(data: Data, place: Place) -> Iterator[Field]:
    """The fields of a message in their order.

    Raises:
        IndexError, KeyError: the bytes are not a message.
    """
    position, end = place
    while position < end:
        tag, begin = data[position], position + 1
        if tag > 0x7F:
            tag, begin = varint(data, position)
        kind, value = tag & 7, 0
        if kind in (BYTES, VARINT):
            value = data[begin]
            if value > 0x7F:
                value, begin = varint(data, begin)
            else:
                begin += 1
        position = begin + (value if kind == BYTES else 0 if kind == VARINT else FIXED[kind])
        yield tag >> 3, kind, value, Place(begin, position)
    if position > end:
        raise IndexError


def release(data: Data, place: Place) -> None:
    """Give back the memory of a part of a mapped file; it is read again where it is asked for."""
    if isinstance(data, mmap):
        begin = place.begin // ALLOCATIONGRANULARITY * ALLOCATIONGRANULARITY
        data.madvise(MADV_DONTNEED, begin, place.end - begin)


def text(data: Data, place: Place) -> str:
    """A string; what is not UTF-8 in it is replaced."""
    return data[place.begin : place.end].decode(errors="replace")


def double(data: Data, place: Place) -> float:
    """A floating-point number."""
    return unpack_from("<d", data, place.begin)[0]


def varint(data: Data, position: int) -> tuple[int, int]:
    """The integer at a place, and where it ends."""
    value, shift = data[position], 7
    position += 1
    if value < 0x80:
        return value, position
    value &= 0x7F
    while True:
        byte = data[position]
        position += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, position
        shift += 7


def signed(value: int) -> int:
    """An ``int64`` from the integer that stands for it."""
    value &= (1 << 64) - 1
    return value - (1 << 64) if value >> 63 else value
