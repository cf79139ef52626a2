"""Process groups, and what a recording says of a collective: its group, its size, the peer of a transfer."""

from typing import NamedTuple

ELEMENT_BYTES = {
    **dict.fromkeys(("Byte", "Char", "Bool", "QInt8", "Float8_e4m3fn", "Float8_e5m2"), 1),
    **dict.fromkeys(("Half", "BFloat16", "Short"), 2),
    **dict.fromkeys(("Float", "Int", "QInt32"), 4),
    **dict.fromkeys(("Double", "Long", "ComplexFloat"), 8),
}
"""Bytes of an element, by the names of PyTorch (c10/core/ScalarType.h)."""


class Group(NamedTuple):
    """Ranks that communicate with each other; no ranks: which they are is not known."""

    name: str = ""
    description: str = ""
    ranks: tuple[int, ...] = ()


WORLD = Group()
"""Of a collective that names none: all ranks, as far as is known."""


class CollectiveCall(NamedTuple):
    """What an operation says of its collective.

    ``size_bytes`` is what a rank contributes or receives, the larger of both; 0 where it is not known. ``sender`` and
    ``receiver`` are the ranks of a transfer between two.
    """

    group: Group = WORLD
    size_bytes: int = 0
    sender: int | None = None
    receiver: int | None = None

    @property
    def pair(self) -> tuple[int, int] | None:
        """Sender and receiver, if both are known."""
        if self.sender is None or self.receiver is None:
            return None
        return self.sender, self.receiver


UNSAID = CollectiveCall()
"""Of an operation of which the recording says nothing."""


def bus_factor(kind: str, ranks: int) -> float:
    """Bytes that the slowest link carries, over the larger of what a rank gives and gets (NCCL tests)."""
    if ranks < 2:
        return 0.0
    if kind == "all-reduce":
        return 2 * (ranks - 1) / ranks
    return (ranks - 1) / ranks if kind in ("all-gather", "reduce-scatter", "all-to-all") else 1.0
