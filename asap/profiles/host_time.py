"""What the host does while the device has nothing to do: the time split by activity.

Activities are told by the names of calls and spans (``host_activities.toml``). Only the time in which a device waits
counts, so data that a loader fetches beside a step costs nothing. The rest is Python: nothing recorded says more.
"""

import re
import tomllib
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, lru_cache
from importlib.resources import files
from typing import NamedTuple

import numpy as np

from asap.core.units import format_percent, format_seconds
from asap.profiles.cpu import PS_PER_NS, CpuEvents, origin_of
from asap.profiles.totals import HOST
from asap.profiles.xplane.columns import Integers, distinct, union
from asap.profiles.xplane.planes import Line, Plane

PYTHON, LAUNCH, SYNCHRONISATION, EVALUATION = "python", "launch", "synchronisation", "evaluation"
BETWEEN_LAUNCHES = 500_000
"""Nanoseconds of Python between two launches from which it does something of its own: an operator of PyTorch costs 5
to 20 µs, its module some 100 µs (PyTorch, "Performance Tuning Guide": CPU overhead of small operators)."""

_JUST_AFTER = 50_000
"""Nanoseconds after which a blocking call has returned once the device is done: tens of µs on V100, A100 and H100."""

Spans = tuple[Integers, Integers]
"""Starts and ends, in nanoseconds."""


class _Activity(NamedTuple):
    kind: str
    pattern: re.Pattern[str]
    least_ns: int


@cache
def _activities() -> tuple[_Activity, ...]:
    text = files("asap.profiles").joinpath("host_activities.toml").read_text(encoding="utf-8")
    return tuple(
        _Activity(entry["kind"], re.compile(entry["pattern"]), 1000 * entry.get("least_us", 0))
        for entry in tomllib.loads(text)["activity"]
    )


def activity_of(name: str, length: int = 0) -> str | None:
    """What a call or span of the host does that lasts ``length`` nanoseconds; ``None`` where its name does not say."""
    lasting = [activity for activity in _named(name) if length >= activity.least_ns]
    return max(lasting, key=lambda activity: activity.least_ns).kind if lasting else None


@lru_cache(maxsize=1 << 16)
def _named(name: str) -> tuple[_Activity, ...]:
    return tuple(activity for activity in _activities() if activity.pattern.search(name))


@dataclass(frozen=True)
class Activities:
    """When the threads that launch work did what; ``blocking`` are the calls that wait for the device."""

    spans: Mapping[str, Spans]
    blocking: Spans = field(default_factory=lambda: (_NONE, _NONE))


_NONE = np.empty(0, dtype=np.int64)


def split(waits: Spans, activities: Activities, window: int) -> dict[str, float]:
    """Shares of the window by activity.

    Args:
        waits: when the device had nothing to do because the host had not launched it; they do not overlap.
        activities: of the host; spans of one kind may overlap and contain others.
        window: its length, in nanoseconds.
    """
    begin, end = waits
    after = _after_blocking(waits, activities.blocking)
    every = [moments for kind in activities.spans.values() for moments in kind]
    moments = distinct(np.concatenate([begin, end, *after, *every]))
    if window <= 0 or len(moments) < 2:
        return {}
    length = np.diff(moments)
    open_ = _covers(moments, begin, end)
    shares = {}
    for kind in dict.fromkeys(activity.kind for activity in _activities()):
        spans = activities.spans.get(kind)
        if spans is None or kind in (LAUNCH, SYNCHRONISATION):
            continue
        inside = _covers(moments, *spans)
        counted = inside if kind == EVALUATION else inside & open_
        shares[kind] = float(length[counted].sum()) / window
        open_ &= ~inside
    shares |= _rest(moments, length, open_, after, activities, window)
    return {kind: share for kind, share in sorted(shares.items(), key=lambda each: -each[1]) if share > 0}


def before_first(activities: Activities, window: tuple[int, int]) -> str | None:
    """What the host did before the device had anything to do, where that took longer than the window itself."""
    first = int(np.concatenate([window[:1], *(begin for begin, _ in activities.spans.values())]).min())
    before = window[0] - first
    if before <= window[1] - window[0]:
        return None
    took = split((np.array([first]), np.array(window[:1])), activities, before)
    parts = ", ".join(f"{kind.replace('_', ' ')} {format_percent(share)}" for kind, share in took.items())
    busy = f"The host was busy for {format_seconds(1e-9 * before)} before the device's first operation ({parts})"
    return f"{busy}; that is no part of the window: record later, or mark steps."


def _rest(
    moments: Integers, length: Integers, open_: np.ndarray, after: Spans, activities: Activities, window: int
) -> dict[str, float]:
    """What follows a blocking call is its price, for the device ran dry; then launches, and Python between them."""
    synchronised = open_ & _covers(moments, *after)
    if SYNCHRONISATION in activities.spans:
        synchronised |= open_ & _covers(moments, *activities.spans[SYNCHRONISATION])
    open_ = open_ & ~synchronised
    launches = _covers(moments, *activities.spans[LAUNCH]) if LAUNCH in activities.spans else np.zeros_like(open_)
    busy, other = open_ & launches, open_ & ~launches
    edges = np.flatnonzero(np.diff(np.concatenate([[False], other, [False]]).astype(np.int8)))
    pieces = [int(length[first:last].sum()) for first, last in zip(edges[::2], edges[1::2], strict=True)]
    long = sum(piece for piece in pieces if piece >= BETWEEN_LAUNCHES)
    return {
        SYNCHRONISATION: float(length[synchronised].sum()) / window,
        LAUNCH: (float(length[busy].sum()) + sum(pieces) - long) / window,
        PYTHON: long / window,
    }


def _after_blocking(waits: Spans, blocking: Spans) -> Spans:
    """The waits that begin as a blocking call returns, for no longer than it took: so far the host would be ahead."""
    begin, end = waits
    if not len(blocking[0]) or not len(begin):
        return _NONE, _NONE
    starts, ends = union(*blocking)
    last = np.searchsorted(starts, begin, side="right") - 1
    follows = (ends[last] >= begin - _JUST_AFTER) & (last >= 0)
    ahead = np.maximum(begin, ends[last]) + ends[last] - starts[last]
    return begin[follows], np.minimum(end, ahead)[follows]


def _covers(moments: Integers, start: Integers, end: Integers) -> np.ndarray:
    """For each piece between two moments, whether one of the spans holds it."""
    change = np.zeros(len(moments) + 1, dtype=np.int64)
    np.add.at(change, np.searchsorted(moments, start), 1)
    np.add.at(change, np.searchsorted(moments, np.maximum(start, end)), -1)
    return np.cumsum(change)[: len(moments) - 1] > 0


_DEVICE = "/device:"
_PROGRAMS, _STREAM = "XLA Modules", "Stream #"


def host_time(planes: Sequence[Plane], events: CpuEvents | None) -> dict[str, float] | None:
    """Shares of the time from the first program to the last; ``None`` where no thread was recorded that launches any.

    Args:
        planes: of a host.
        events: of the virtual devices of a CPU, where there are no others.
    """
    plane = next((plane for plane in planes if plane.name == HOST), None)
    ran = _joined(_programs(planes, plane, events))
    if plane is None or not len(ran[0]):
        return None
    activities = _activities_of_plane(plane)
    if activities is None:
        return None
    begin, end = ran
    marks = [(mark.start // PS_PER_NS, mark.end // PS_PER_NS) for mark in (events.marks if events else ())]
    origin = origin_of(plane)
    first = min([int(begin[0]), *(origin + start for start, _ in marks)])
    last = max([int(end[-1]), *(origin + stop for _, stop in marks)])
    waits = np.append(first, end), np.append(begin, last)
    longer = waits[1] > waits[0]
    return split((waits[0][longer], waits[1][longer]), activities, last - first)


def mean_of_hosts(found: Iterable[dict[str, float] | None]) -> dict[str, float]:
    """Mean shares over the hosts whose threads were recorded, the largest first."""
    hosts = [shares for shares in found if shares is not None]
    kinds = dict.fromkeys(kind for shares in hosts for kind in shares)
    mean = {kind: sum(shares.get(kind, 0.0) for shares in hosts) / len(hosts) for kind in kinds}
    return dict(sorted(mean.items(), key=lambda each: -each[1]))


def _programs(planes: Iterable[Plane], host: Plane | None, events: CpuEvents | None) -> Iterator[Spans]:
    """When programs ran on the devices of a host, or kernels; gaps within a program are not the host's."""
    if events is not None and events.runs and host is not None:
        runs = np.array([*events.runs.values()], dtype=np.int64) // PS_PER_NS + origin_of(host)
        yield runs[:, 0], runs[:, 1]
        return
    for plane in planes:
        if plane.name.startswith(_DEVICE):
            lines = [line for line in plane.lines if not line.is_empty]
            programs = [line for line in lines if line.name == _PROGRAMS]
            for line in programs or [line for line in lines if line.name.startswith(_STREAM)]:
                yield _spans(line)[:2]


def _joined(parts: Iterable[Spans]) -> Spans:
    """The union of spans, in their order."""
    every = list(parts)
    return union(*map(np.concatenate, zip(*every, strict=True))) if every else (_NONE, _NONE)


def _activities_of_plane(plane: Plane) -> Activities | None:
    """Of the threads that launch programs; ``None`` where none was recorded."""
    launches = next(activity.pattern for activity in _activities() if activity.kind == LAUNCH).search
    launching = [number for number, name in plane.names.items() if launches(name) and activity_of(name) == LAUNCH]
    spans: dict[str, list[Spans]] = defaultdict(list)
    for line in plane.lines:
        start, end, metadata = _spans(line)
        if not np.isin(metadata, launching).any():
            continue
        for kind, rows in _by_kind(metadata, plane.names).items():
            spans[kind].append((start[rows], end[rows]))
    if not spans:
        return None
    joined = {kind: _joined(parts) for kind, parts in spans.items()}
    return Activities(joined, joined.get(SYNCHRONISATION, Activities({}).blocking))


def _by_kind(metadata: Integers, names: Mapping[int, str]) -> dict[str, Integers]:
    numbers: dict[str, list[int]] = defaultdict(list)
    for number in distinct(metadata).tolist():
        if kind := activity_of(names.get(number, "")):
            numbers[kind].append(number)
    return {kind: np.flatnonzero(np.isin(metadata, found)) for kind, found in numbers.items()}


def _spans(line: Line) -> tuple[Integers, Integers, Integers]:
    events = line.events()
    return events.start_ns, events.start_ns + events.duration // PS_PER_NS, events.metadata
