"""Protobuf messages, field by field: a field carries its length, so what is not wanted is stepped over.

Encoding: https://protobuf.dev/programming-guides/encoding/. Numbers of fields are below 16: their tag is one byte.
"""

from collections.abc import Iterator

VARINT, BYTES = 0, 2
FIXED = {1: 8, 5: 4}

Place = tuple[int, int]
"""Where a message begins and ends."""


def find(data: bytes, place: Place, number: int) -> Iterator[Place]:
    """The messages or strings of a field, one after the other.

    Raises:
        IndexError, KeyError: the bytes are not a message.
    """
    position, end = place
    wanted = number << 3 | BYTES
    while position < end:
        if data[position] == wanted:
            length = data[position + 1]
            position += 2
            if length & 0x80:
                length, position = varint(data, position - 1)
            yield position, position + length
            position += length
        else:
            tag, position = varint(data, position)
            position = _skip(data, position, tag & 7)
    if position > end:
        raise IndexError


def text(data: bytes, place: Place, number: int) -> str:
    """The first string of a field; empty if there is none."""
    begin, end = next(find(data, place, number), (0, 0))
    return data[begin:end].decode(errors="replace")


def integer(data: bytes, place: Place, number: int) -> int:
    """The first integer of a field; zero if there is none. What follows it is not looked at."""
    position, end = place
    wanted = number << 3 | VARINT
    while position < end:
        tag, position = varint(data, position)
        if tag == wanted:
            return varint(data, position)[0]
        position = _skip(data, position, tag & 7)
    return 0


def varint(data: bytes, position: int) -> tuple[int, int]:
    """The integer at a place, and where it ends."""
    value, shift = 0, 0
    while True:
        byte = data[position]
        position += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, position
        shift += 7


def _skip(data: bytes, position: int, kind: int) -> int:
    if kind == VARINT:
        return varint(data, position)[1]
    if kind == BYTES:
        length, position = varint(data, position)
        return position + length
    return position + FIXED[kind]
