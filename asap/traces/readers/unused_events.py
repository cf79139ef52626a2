"""Events that nobody reads, left out of the text before it is decoded: most of a trace, so most of the time.

A writer lays all its events out alike, so those of a category begin with the same bytes. What begins otherwise, or does
not close as many braces as it opens (one may be in a name), is kept. Of what is left out nothing else is checked.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

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
