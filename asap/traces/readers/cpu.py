"""CPU profiles of JAX: each virtual device is a rank.

Its operations run on whatever thread of a pool is free, so they are one stream, in the order in which they began. A
step is what ran between two marks of the training loop.
"""

from collections.abc import Sequence

import numpy as np

from asap.profiles.cpu import CpuWork, Mark, read_cpu
from asap.profiles.xplane.planes import Plane
from asap.traces.operations import collective_kind
from asap.traces.readers.rows import Numbering
from asap.traces.trace import NO_CORRELATION, Events, Integers, OperationKind, RankTrace, Step

_PS_PER_NS = 1000
_NOTE = "virtual devices of a CPU: operations of all of them share its cores"


def read_devices(planes: Sequence[Plane]) -> list[RankTrace]:
    """The virtual devices of one host; times are nanoseconds after its first event."""
    events = read_cpu([planes])
    devices = sorted({int(device) for part in events.work for device in np.unique(part.device)})
    marks = sorted(events.marks, key=lambda mark: mark.start)
    return [_device([part.of_device(device) for part in events.work], device, marks) for device in devices]


def _device(work: Sequence[CpuWork], number: int, marks: Sequence[Mark]) -> RankTrace:
    names: Numbering[str] = Numbering()
    rows, runs = [], []
    for part in work:
        kept = _leaves(part.start, part.end)
        labels = [str(part.name[row]) for row in kept.tolist()]
        kinds = [OperationKind.COMMUNICATION if collective_kind(name) else OperationKind.COMPUTE for name in labels]
        columns = (
            np.array([names[label] for label in labels], dtype=np.int64),
            np.zeros(len(kept), dtype=np.int64),
            part.start[kept] // _PS_PER_NS,
            part.end[kept] // _PS_PER_NS,
            np.full(len(kept), NO_CORRELATION),
            np.array(kinds, dtype=np.int64),
        )
        rows.append(np.stack(columns, axis=1))
        runs.append(part.run[kept])
    operations = np.concatenate(rows)
    return RankTrace(
        rank=number,
        names=list(names),
        lanes=[f"device {number}"],
        calls=Events.of([]),
        operations=Events.of(operations),
        spans=Events.of([]),
        steps=_steps(_executions(operations, np.concatenate(runs)), marks),
        caller=np.arange(1),
        executions=True,
        groups_unknown=True,
        notes=(_NOTE,) if number == 0 else (),
    )


def _leaves(start: Integers, end: Integers) -> Integers:
    """Operations that contain no others: the time of a loop is that of its body. They are ordered by start."""
    contains = np.append(start[1:], np.iinfo(np.int64).max) < end
    return np.flatnonzero(~contains)


def _executions(operations: Integers, run: Integers) -> list[Step]:
    """Each run of a module, from its first operation to its last."""
    spans = []
    for each in np.unique(run).tolist():
        mine = operations[run == each]
        spans.append((int(mine[:, 2].min()), int(mine[:, 3].max())))
    return [Step(str(number), start, end) for number, (start, end) in enumerate(sorted(spans))]


def _steps(executions: list[Step], marks: Sequence[Mark]) -> list[Step]:
    """The executions that began between two marks are one step.

    Where steps would have different numbers of them, the device ran behind its host, and each execution counts.
    """
    starts = [mark.start // _PS_PER_NS for mark in marks]
    number = np.searchsorted(starts, [execution.start for execution in executions], side="right") - 1
    found = [[executions[row] for row in np.flatnonzero(number == mark)] for mark in range(len(marks))]
    if len({len(members) for members in found}) != 1 or not found[0]:
        return executions
    return [
        Step(str(mark.number), members[0].start, max(member.end for member in members))
        for mark, members in zip(marks, found, strict=True)
    ]
