"""Operations while a jaxpr is read: what is written counts once somebody reads it."""

from collections import Counter
from dataclasses import dataclass, field

from asap.compiler.traced.operations import Operation, Send

_HBM, _VMEM = 0, 1


@dataclass(eq=False)
class Buffer:
    """Memory of an array: bytes, the operation that writes it, and where it lies."""

    size: int
    writer: int | None
    in_hbm: bool
    is_read: bool = False


@dataclass(frozen=True)
class Value:
    """What a variable stands for.

    Args:
        buffer: where it lies; none if it is computed where it is used, as constants and indices are.
        after: the operation after which it is there.
        part: its bytes, if it is not all of the buffer.
        view: tells parts of a buffer apart.
    """

    buffer: Buffer | None = None
    after: int | None = None
    part: int | None = None
    view: int = 0

    @property
    def size(self) -> int:
        """Bytes that reading it reads."""
        return self.part if self.part is not None else self.buffer.size if self.buffer else 0

    def fuses_with(self, operation: int | None) -> bool:
        """Whether it is what an operation gives, so that more can be computed from it before it is written."""
        return self.buffer is not None and self.part is None and self.buffer.writer == self.after == operation


@dataclass
class Draft:
    """An operation to which more may be fused, if it ``computes``."""

    after: set[int] = field(default_factory=set)
    computes: bool = True
    flops: Counter[str] = field(default_factory=Counter)
    reads: dict[Buffer, int] = field(default_factory=dict)
    writes: dict[Buffer, int] = field(default_factory=dict)
    send: Send | None = None
    body: tuple[Operation, ...] = ()
    times: int = 1

    def read(self, value: Value, most: int | None = None) -> None:
        """Count a value that is read, once if it is read again."""
        if value.buffer is not None:
            size = value.size if most is None else min(value.size, most)
            self.reads[value.buffer] = max(self.reads.get(value.buffer, 0), size)
            value.buffer.is_read = True

    def finished(self) -> Operation:
        """The operation, once all that read its results are known."""
        size: Counter[int] = Counter()
        written = {buffer: count for buffer, count in self.writes.items() if buffer.is_read}
        for buffer, count in (*self.reads.items(), *written.items()):
            size[_HBM if buffer.in_hbm else _VMEM] += count
        return Operation(tuple(sorted(self.after)), self.flops, size, self.send, self.body, self.times)
