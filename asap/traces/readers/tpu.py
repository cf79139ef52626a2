"""A TPU core: one operation after the other, and links that carry transfers in order.

An asynchronous operation shows as ``-start`` and ``-done`` on the line of the core; its ``-done`` is waiting. The time
that the transfer itself takes is not recorded: it is the time of those of the same link that began with the link idle
and were waited for, by bytes.
"""

import re
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from statistics import median

import numpy as np

from asap.plans.replica_groups import joined
from asap.profiles.collectives import base_name, collective_of, opcode
from asap.profiles.xplane.planes import Events as Recorded
from asap.profiles.xplane.planes import Plane
from asap.traces.trace import (
    NO_COLLECTIVE,
    NO_CORRELATION,
    CollectiveCall,
    Events,
    Group,
    Integers,
    Numbering,
    OperationKind,
    RankTrace,
    Step,
)

_OPERATIONS, _MODULES = "XLA Ops", "XLA Modules"
_CORE = "core"
_HOST_MEMORY = "S(5)"
_NAME = re.compile(r"%?([\w.-]+)")
_STARTED = re.compile(r"%([\w.-]*start[\w.-]*)")
_LARGEST_BYTES = 2**50
"""More than any memory holds."""

_SHAPE = re.compile(r"([a-z]{1,20})(\d{0,9})\w{0,20}\[([\d,]*)\]")
_MINIMUM_WAIT = 1_000
"""Nanoseconds: a ``-done`` that takes less did not wait."""


@dataclass
class _Transfer:
    link: str
    name: str
    issued: int
    size: int
    issuer: int
    done: int = -1
    done_row: int = -1
    waited: bool = False
    start: int = -1
    duration: int = 0
    said: int = NO_COLLECTIVE


def read_core(plane: Plane, number: int, devices: Sequence[int] = ()) -> RankTrace | None:
    """The trace of one core; None if it ran nothing. ``devices`` are all of the job, as its program numbers them."""
    lines = {line.name: line for line in plane.lines}
    if _OPERATIONS not in lines or lines[_OPERATIONS].is_empty:
        return None
    reader = _Core(plane, lines[_OPERATIONS].events(), number, devices)
    transfers = reader.transfers()
    moved = [reader.row_of(transfer) for transfer in transfers]
    rows = np.concatenate([reader.rows, np.array(moved, dtype=np.int64).reshape(-1, 7)])
    order = np.lexsort(rows[:, [3, 2]].T)
    place = np.argsort(order)
    pairs = []
    for row, transfer in enumerate(transfers, start=len(reader.rows)):
        pairs += [(row, transfer.issuer), (transfer.done_row, row)]
    taken = np.array([transfer.duration for transfer in transfers], dtype=np.int64)
    own = np.concatenate([reader.rows[:, 3] - reader.rows[:, 2], taken])
    return RankTrace(
        rank=number, names=list(reader.names), lanes=list(reader.lanes), calls=Events.of([]), spans=Events.of([]),
        operations=Events.of(rows), caller=np.arange(len(reader.lanes)), executions=True, durations=own[order],
        steps=_executions(plane, lines[_MODULES].events()) if _MODULES in lines else [],
        waits=place[np.array(pairs, dtype=np.int64).reshape(-1, 2)], collectives=list(reader.collectives),
        notes=("a TPU profile does not say when the host launched: pauses between executions are kept as they are",),
    )  # fmt: skip


@dataclass(frozen=True)
class _Instruction:
    """What events with the same text do."""

    expression: str
    name: str
    does: str
    kind: OperationKind

    @classmethod
    def of(cls, expression: str) -> "_Instruction":
        found = _NAME.match(expression)
        name = found.group(1) if found else expression
        does = opcode(expression) or base_name(name)
        is_half = does.endswith(("-start", "-done"))
        communicates = collective_of(name, does)[0] is not None and not is_half
        return cls(expression, name, does, OperationKind.COMMUNICATION if communicates else OperationKind.COMPUTE)


class _Core:
    def __init__(self, plane: Plane, events: Recorded, number: int, devices: Sequence[int]):
        self.collectives: Numbering[CollectiveCall] = Numbering()
        self._number, self._devices = number, devices
        self.names: Numbering[str] = Numbering()
        self.lanes: Numbering[str] = Numbering()
        self._transfers: list[_Transfer] = []
        self._open: dict[str, _Transfer] = {}
        kept = leaves(events.start_ns, events.end_ns)
        keys, place = np.unique(events.metadata[kept], return_inverse=True)
        found = [_Instruction.of(plane.names.get(key, "")) for key in keys.tolist()]
        columns = (
            np.array([self.names[each.name] for each in found], dtype=np.int64)[place],
            np.full(len(kept), self.lanes[_CORE]), events.start_ns[kept], events.end_ns[kept],
            np.full(len(kept), NO_CORRELATION), np.array([each.kind for each in found], dtype=np.int64)[place],
            np.array([self._said(each) for each in found], dtype=np.int64)[place],
        )  # fmt: skip
        self.rows: Integers = np.stack(columns, axis=1)
        halves = np.array([each.does.endswith(("-start", "-done")) for each in found], dtype=bool)[place]
        for row in np.flatnonzero(halves).tolist():
            self._follow(row, found[place[row]])

    def _follow(self, row: int, instruction: _Instruction) -> None:
        """A ``-done`` ends its transfer and waits for it; a ``-start`` begins one."""
        does, expression = instruction.does, instruction.expression
        start, end = self.rows[row, 2:4].tolist()
        if does.endswith("-start"):
            link, size = _link(does, expression), _bytes(expression)
            name, said = instruction.name.replace("-start", ""), self._said(instruction)
            transfer = _Transfer(link, name, end, size, issuer=row, said=said)
            self._open[instruction.name] = transfer
            self._transfers.append(transfer)
        elif transfer := self._open.pop(_started_by(expression), None):
            transfer.done, transfer.done_row, transfer.waited = end, row, end - start > _MINIMUM_WAIT
            self.rows[row, 2] = end

    def _said(self, instruction: _Instruction) -> int:
        """Which devices it joins, where that is known; and what it moves, where it is measured whole."""
        ranks = joined(instruction.expression, self._devices, self._number) if self._devices else ()
        whole = instruction.kind is OperationKind.COMMUNICATION
        size = _bytes(instruction.expression) * (len(ranks) if instruction.does == "reduce-scatter" else 1)
        return self.collectives[CollectiveCall(Group(ranks=ranks), size * whole)] if ranks else NO_COLLECTIVE

    def row_of(self, transfer: _Transfer) -> tuple[int, ...]:
        """A collective communicates; what goes to or from the host, or between memories, is a copy."""
        kind = OperationKind.COMMUNICATION if collective_of(transfer.name)[0] else OperationKind.COPY
        name, lane = self.names[transfer.name], self.lanes[transfer.link]
        end = min(transfer.start + transfer.duration, max(transfer.done, transfer.start))
        return name, lane, transfer.start, end, NO_CORRELATION, kind, transfer.said

    def transfers(self) -> list[_Transfer]:
        """Those that were done, with when their link carried them."""
        links: dict[str, list[_Transfer]] = defaultdict(list)
        for transfer in self._transfers:
            if transfer.done >= 0:
                links[transfer.link].append(transfer)
        for queue in links.values():
            _carry(queue, _time_a_byte(queue))
        return [transfer for queue in links.values() for transfer in queue]


def _started_by(expression: str) -> str:
    """``copy-done((…) %copy-start.2)`` → ``copy-start.2``."""
    found = _STARTED.search(expression.partition("(")[2])
    return found.group(1) if found else ""


def _time_a_byte(queue: list[_Transfer]) -> float:
    """Nanoseconds: the median over transfers that found their link idle and were waited for.

    If there is none, over all that were waited for, from when their link was free.
    """
    free, alone, waited = 0, [], []
    for transfer in queue:
        rate = (transfer.done - transfer.issued) / max(transfer.size, 1)
        if transfer.waited:
            waited.append((transfer.done - max(transfer.issued, free)) / max(transfer.size, 1))
            alone += [rate] if transfer.issued + _MINIMUM_WAIT >= free else []
        free = transfer.done
    return median(alone or waited or [0.0])


def _carry(queue: list[_Transfer], rate: float) -> None:
    free = 0
    for transfer in queue:
        transfer.start = max(transfer.issued, free)
        transfer.duration = round(rate * transfer.size)
        free = min(transfer.start + transfer.duration, transfer.done)


def _link(does: str, expression: str) -> str:
    """The wire that an operation uses: one for each direction to and from the host, one between chips."""
    if collective_of(does.replace("-start", ""))[0]:
        return "interconnect"
    result, _, operands = expression.partition(does + "(")
    if _HOST_MEMORY in operands:
        return "host to device"
    return "device to host" if _HOST_MEMORY in result else "memory"


def _bytes(expression: str) -> int:
    """Size of the first shape: what a transfer moves."""
    found = _SHAPE.search(expression.partition("=")[2])
    if not found:
        return 1
    kind, bits, dimensions = found.groups()
    count = prod(int(length) for length in dimensions.split(",") if length)
    return min(count, _LARGEST_BYTES) * (1 if kind == "pred" else int(bits or 8)) // 8 or 1


def leaves(start: Integers, end: Integers) -> Integers:
    """Operations that contain no others, in their order: the time of a loop is that of its body."""
    order = np.lexsort((-end, start))
    lasting = order[end[order] > start[order]]
    contains = np.append(start[lasting][1:], np.iinfo(np.int64).max) < end[lasting]
    order = np.setdiff1d(order, lasting[contains])
    return order[np.lexsort((end[order], start[order]))]


def _executions(plane: Plane, modules: Recorded) -> list[Step]:
    """Runs of the module that took most of the time."""
    if not len(modules):
        return []
    totals: dict[int, int] = defaultdict(int)
    for metadata, time in zip(modules.metadata.tolist(), modules.duration.tolist(), strict=True):
        totals[metadata] += time
    main = max(totals, key=lambda metadata: totals[metadata])
    mine = np.flatnonzero(modules.metadata == main)
    label = plane.names.get(main, "").partition("(")[0]
    runs = zip(modules.start_ns[mine].tolist(), modules.end_ns[mine].tolist(), strict=True)
    return [Step(f"{label} {i}", start, end) for i, (start, end) in enumerate(runs)]
