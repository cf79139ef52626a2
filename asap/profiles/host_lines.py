"""What the host of an XPlane profile did while its devices ran no program, by the events of the lines that launch."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence

import numpy as np

from asap.profiles.cpu import CpuEvents
from asap.profiles.host_time import LAUNCH, SYNCHRONISATION, Activities, Spans, activity_of, split
from asap.profiles.xplane.columns import Integers
from asap.profiles.xplane.planes import Line, Plane

_HOST = "/host:CPU"
_DEVICE = "/device:"
_PROGRAMS = "XLA Modules"
_PS_PER_NS = 1000


def host_time(hosts: Sequence[Sequence[Plane]], events: CpuEvents | None) -> dict[str, float]:
    """Shares of the time from the first program to the last, mean over hosts whose threads were recorded.

    Args:
        hosts: the planes of each.
        events: of the virtual devices of a CPU, where there are no others.
    """
    found = [shares for number, planes in enumerate(hosts) if (shares := _of_host(planes, number, events)) is not None]
    kinds = dict.fromkeys(kind for shares in found for kind in shares)
    mean = {kind: sum(shares.get(kind, 0.0) for shares in found) / len(found) for kind in kinds}
    return dict(sorted(mean.items(), key=lambda each: -each[1]))


def _of_host(planes: Sequence[Plane], number: int, events: CpuEvents | None) -> dict[str, float] | None:
    plane = next((plane for plane in planes if plane.name == _HOST), None)
    ran = _joined(_programs(planes, plane, number, events))
    if plane is None or not len(ran[0]):
        return None
    activities = _activities(plane)
    if activities is None:
        return None
    begin, end = ran
    marks = [(m.start // _PS_PER_NS, m.end // _PS_PER_NS) for m in (events.marks if events else ()) if m.host == number]
    origin = _origin(plane)
    first = min([int(begin[0]), *(origin + start for start, _ in marks)])
    last = max([int(end[-1]), *(origin + stop for _, stop in marks)])
    waits = np.append(first, end), np.append(begin, last)
    longer = waits[1] > waits[0]
    return split((waits[0][longer], waits[1][longer]), activities, last - first)


def _programs(planes: Iterable[Plane], host: Plane | None, number: int, events: CpuEvents | None) -> Iterator[Spans]:
    """When programs ran on the devices of a host; gaps within a program are not the host's."""
    if events is not None and events.devices and host is not None:
        runs = np.array(events.runs_of(number), dtype=np.int64).reshape(-1, 2) // _PS_PER_NS + _origin(host)
        yield runs[:, 0], runs[:, 1]
        return
    for plane in planes:
        if plane.name.startswith(_DEVICE):
            for line in plane.lines:
                if line.name == _PROGRAMS and not line.is_empty:
                    yield _spans(line)[:2]


def _joined(parts: Iterable[Spans]) -> Spans:
    """The union of spans, in their order."""
    every = list(parts)
    if not every:
        return np.empty(0, dtype=np.int64), np.empty(0, dtype=np.int64)
    start, end = (np.concatenate(columns) for columns in zip(*every, strict=True))
    order = np.argsort(start, kind="stable")
    start, reached = start[order], np.maximum.accumulate(end[order])
    opens = np.flatnonzero(np.append(True, start[1:] > reached[:-1])) if len(start) else np.empty(0, dtype=np.int64)
    return start[opens], reached[np.append(opens[1:] - 1, len(reached) - 1)] if len(start) else reached


def _activities(plane: Plane) -> Activities | None:
    """Of the threads that launch programs; ``None`` where none was recorded."""
    kinds = {number: kind for number, name in plane.names.items() if (kind := activity_of(name))}
    launching = [number for number, kind in kinds.items() if kind == LAUNCH]
    spans: dict[str, list[Spans]] = defaultdict(list)
    for line in plane.lines:
        start, end, metadata = _spans(line)
        if not np.isin(metadata, launching).any():
            continue
        for kind, rows in _by_kind(metadata, kinds).items():
            spans[kind].append((start[rows], end[rows]))
    if not spans:
        return None
    joined = {kind: _joined(parts) for kind, parts in spans.items()}
    return Activities(joined, joined.get(SYNCHRONISATION, Activities({}).blocking))


def _by_kind(metadata: Integers, kinds: Mapping[int, str]) -> dict[str, Integers]:
    numbers: dict[str, list[int]] = defaultdict(list)
    for number in np.unique(metadata).tolist():
        if number in kinds:
            numbers[kinds[number]].append(number)
    return {kind: np.flatnonzero(np.isin(metadata, found)) for kind, found in numbers.items()}


def _spans(line: Line) -> tuple[Integers, Integers, Integers]:
    events = line.events()
    return events.start_ns, events.start_ns + events.duration // _PS_PER_NS, events.metadata


def _origin(plane: Plane) -> int:
    """What the times of :class:`CpuEvents` begin at."""
    return min((line.timestamp_ns for line in plane.lines if not line.is_empty), default=0)
