"""A trace as columns: what the hosts called, what the devices ran, and which step it belongs to.

Times are integer nanoseconds after the start of the trace: epoch microseconds in a double are a quarter of a
microsecond apart, which is enough to cut a dependency.
"""

import re
from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field, replace
from enum import IntEnum
from functools import cached_property, lru_cache
from typing import NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from asap.profiles.collectives import base_name, collective_of, work_of_kernel


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


Integers = NDArray[np.int64]
NS = 1e-9
NO_CORRELATION = -1
NO_COLLECTIVE = -1
_COLUMNS = 7


class OperationKind(IntEnum):
    """What an operation of a device does."""

    COMPUTE = 0
    COMMUNICATION = 1
    COPY = 2
    MEMSET = 3


@dataclass(frozen=True, eq=False)
class Events:
    """Rows of one sort of event, ordered by start.

    ``lane`` is an index into ``RankTrace.lanes``: the thread of a call or span, the stream of an operation.
    ``collective`` is an index into ``RankTrace.collectives``, -1 where nothing is said of one.
    """

    name: Integers
    lane: Integers
    start: Integers
    end: Integers
    correlation: Integers
    kind: Integers
    collective: Integers

    @classmethod
    def of(cls, rows: Sequence[tuple[int, ...]] | Integers) -> "Events":
        """From rows of name, lane, start, end, correlation, kind and, where they have it, collective."""
        table = np.asarray(rows, dtype=np.int64)
        table = table.reshape(len(table), -1 if len(table) else _COLUMNS)
        missing = _COLUMNS - table.shape[1]
        table = np.pad(table, ((0, 0), (0, missing)), constant_values=NO_COLLECTIVE)
        return cls(*table[np.lexsort((table[:, 3], table[:, 2]))].T.copy())

    @classmethod
    def joined(cls, parts: Sequence[Integers]) -> "Events":
        """From parts of such rows."""
        return cls.of(np.concatenate(parts) if parts else [])

    def __len__(self) -> int:
        return len(self.start)

    def take(self, rows: NDArray[np.bool_] | Integers) -> "Events":
        """Some of the rows, in their order."""
        return Events(*(column[rows] for column in vars(self).values()))

    def shifted(self, by: int) -> "Events":
        """The same rows, ``by`` nanoseconds earlier."""
        return replace(self, start=self.start - by, end=self.end - by)


@dataclass(frozen=True)
class Step:
    """One marked step of the training loop, or one execution of its module."""

    label: str
    start: int
    end: int

    def follows(self, other: "Step") -> bool:
        """Whether it is the next one; steps that are not counted always are."""
        counted = self.label.isdecimal() and other.label.isdecimal()
        return not counted or int(self.label) == int(other.label) + 1


class Launches(NamedTuple):
    """For each operation the call that launched it, ``-1`` where the trace has none."""

    call: Integers
    known: NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class RankTrace:
    """What one rank recorded.

    ``waits`` holds pairs of rows of ``operations``: the first does not start before the second has ended.
    ``caller`` gives, for each lane, the thread that it is in line with: a thread that runs backward passes works while
    its caller waits, so both are one sequence. ``executions`` says that steps are executions of a module, each timed by
    itself from its first operation to its last; else they follow each other without a pause. ``durations`` is what the
    operations take, where that is not from their start to their end. ``groups_unknown`` says that it is not known which
    ranks take part in a collective; ``collectives`` is what the recording says of those that it names.
    """

    rank: int
    names: Sequence[str]
    lanes: Sequence[str]
    calls: Events
    operations: Events
    spans: Events
    steps: Sequence[Step]
    caller: Integers
    executions: bool = False
    durations: Integers | None = None
    waits: Integers = field(default_factory=lambda: np.empty((0, 2), dtype=np.int64))
    step_lane: int = -1
    world_size: int | None = None
    device: str | None = None
    groups_unknown: bool = False
    collectives: Sequence[CollectiveCall] = ()
    notes: tuple[str, ...] = ()

    def shifted(self, by: int) -> "RankTrace":
        """The same events, ``by`` nanoseconds earlier."""
        return replace(
            self, calls=self.calls.shifted(by), operations=self.operations.shifted(by), spans=self.spans.shifted(by),
            steps=[Step(step.label, step.start - by, step.end - by) for step in self.steps],
        )  # fmt: skip

    def since(self, moment: int) -> "RankTrace":
        """What was launched then or later, or ran where the launch was not recorded."""
        begun, known = self.operations.start.copy(), self.launches.known
        begun[known] = self.calls.start[self.launches.call[known]]
        kept = begun >= moment
        return replace(
            self, calls=self.calls.take(self.calls.start >= moment), operations=self.operations.take(kept),
            spans=self.spans.take(self.spans.start >= moment),
            steps=[each for each in self.steps if each.start >= moment],
            durations=None if self.durations is None else self.durations[kept],
            waits=(np.cumsum(kept) - 1)[self.waits[kept[self.waits].all(axis=1)]],
        )  # fmt: skip

    @cached_property
    def launches(self) -> Launches:
        """Operations and calls joined by their correlation."""
        wanted, order = self.operations.correlation, np.argsort(self.calls.correlation, kind="stable")
        if not len(order):
            return Launches(np.full(len(wanted), -1), np.zeros(len(wanted), dtype=bool))
        ordered = self.calls.correlation[order]
        place = np.minimum(np.searchsorted(ordered, wanted), len(ordered) - 1)
        known = (ordered[place] == wanted) & (wanted >= 0)
        return Launches(np.where(known, order[place], -1), known)

    @property
    def first(self) -> int:
        """When the first call, operation or step started."""
        starts = [int(events.start.min()) for events in (self.calls, self.operations) if len(events)]
        return min(starts + [step.start for step in self.steps])

    @property
    def device_span(self) -> int:
        """From the first to the last operation, in nanoseconds."""
        return int(self.operations.end.max() - self.operations.start.min())


class Matched(NamedTuple):
    """Collectives of one kind in one group.

    ``members`` are places in the list of ranks, and ``rows[m, n]`` is the row of the n-th of these collectives on the
    m-th of them. ``between_two`` are transfers from one rank to another, as between stages of a pipeline: without names
    of its peers, a send and receive of many ranks may be all-to-all.
    """

    kind: str
    group: Group
    members: Integers
    rows: Integers
    size_bytes: Integers
    between_two: bool

    @property
    def collectives(self) -> int:
        """How many collectives these are."""
        return self.rows.shape[1]

    def of(self, columns: Sequence[Integers]) -> Integers:
        """``[m, n]``: a value of each operation, from a column for each rank."""
        return np.stack([columns[member][rows] for member, rows in zip(self.members.tolist(), self.rows, strict=True)])


@dataclass(frozen=True, eq=False)
class Trace:
    """All ranks that are at hand, on one clock.

    ``clock_spread_s`` is how far apart the ranks see the end of one collective, once their clocks are aligned (largest
    over ranks of the median over collectives); None for one rank.
    """

    format: str
    ranks: Sequence[RankTrace]
    clock_spread_s: float | None = None
    notes: tuple[str, ...] = ()
    matched: Sequence[Matched] = ()
    """Collectives of which several ranks are at hand."""

    @cached_property
    def recorded_steps(self) -> int:
        """How many steps each rank recorded; one where none is marked."""
        return max(max(len(rank.steps), 1) for rank in self.ranks)


ANY_COLLECTIVE = "collective"
"""A collective whose name does not say which: ``ncclDevKernel_Generic``."""

_LOADING = re.compile(r"enumerate\(DataLoader\)#.*|_(?:Single|Multi)Process\w*DataLoaderIter.*__next__")


@lru_cache(maxsize=1 << 16)
def collective_kind(name: str) -> str | None:
    """Kind of the collective that a kernel, thunk or HLO operation carries out; None if it is not one."""
    if kind := collective_of(base_name(name))[0]:
        return kind
    kernel = work_of_kernel(name)
    return kernel.collective or (ANY_COLLECTIVE if kernel.work == "communication" else None)


def is_loading(name: str) -> bool:
    """Whether a span is the training loop waiting for PyTorch's data loader."""
    return bool(_LOADING.fullmatch(name))


Value = TypeVar("Value", bound=Hashable)


class Numbering(dict[Value, int]):
    """Gives each different value the next number."""

    def __missing__(self, value: Value) -> int:
        number = self[value] = len(self)
        return number
