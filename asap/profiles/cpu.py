"""The events of a CPU profile, which is all that it has.

There are no device planes: operations lie on the threads of the host, with the number of their virtual device.
Control flow contains its body, so an operation's own time is its time without what it contains.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from statistics import fmean
from typing import Any, NamedTuple

NS = 1e-9
_HOST = "/host:CPU"


class Span(NamedTuple):
    """Something with a beginning and an end, in nanoseconds."""

    start: float
    end: float


class CpuInstruction(NamedTuple):
    """An operation of a module."""

    module: str
    name: str


@dataclass
class Total:
    """Own time of an operation and how often it ran, over all devices."""

    seconds: float = 0.0
    occurrences: int = 0


@dataclass(frozen=True)
class CpuEvents:
    """What the virtual devices of all hosts did."""

    work: dict[tuple[int, int], list[Span]] = field(default_factory=lambda: defaultdict(list))
    runs: dict[tuple[int, int, str, int], list[Span]] = field(default_factory=lambda: defaultdict(list))
    operations: dict[CpuInstruction, Total] = field(default_factory=lambda: defaultdict(Total))

    @property
    def devices(self) -> int:
        """Virtual devices that ran an operation."""
        return len(self.work)

    @cached_property
    def window_s(self) -> float:
        """From the first to the last operation, mean over devices."""
        return NS * fmean(_extent(spans) for spans in self.work.values())

    @property
    def duty_cycle(self) -> float | None:
        """Share of the window in which a device ran at least one operation, mean over devices."""
        return NS * fmean(map(_covered, self.work.values())) / self.window_s if self.window_s else None

    @property
    def modules(self) -> dict[str, list[float]]:
        """Seconds of each run of each module on each device."""
        modules: dict[str, list[float]] = defaultdict(list)
        for (_, _, module, _), spans in self.runs.items():
            modules[module].append(NS * _extent(spans))
        return modules


def read_cpu(files: Sequence[Path]) -> CpuEvents:
    """Read the operations of all hosts."""
    events = CpuEvents()
    for host, file in enumerate(files):
        for line in _host_lines(file):
            _add_line(events, host, line)
    return events


def _host_lines(file: Path) -> Iterator[Any]:
    """Threads of the host. ``jax.profiler.ProfileData`` comes without the half second that importing jax takes."""
    try:
        from jaxlib._profile_data import ProfileData
    except ImportError:
        from jax.profiler import ProfileData

    profile = ProfileData.from_file(str(file))
    for plane in profile.planes:
        if plane.name == _HOST:
            yield from plane.lines


def _add_line(events: CpuEvents, host: int, line: Any) -> None:
    found: list[tuple[Span, CpuInstruction]] = []
    for event in line.events:
        stats = dict(event.stats)
        if "hlo_op" not in stats or "device_ordinal" not in stats:
            continue
        span = Span(event.start_ns, event.start_ns + event.duration_ns)
        device, module = stats["device_ordinal"], stats.get("hlo_module", "")
        events.work[host, device].append(span)
        events.runs[host, device, module, stats.get("run_id", 0)].append(span)
        found.append((span, CpuInstruction(module, stats["hlo_op"])))
    _add_own_times(found, events.operations)


def _add_own_times(found: list[tuple[Span, CpuInstruction]], operations: dict[CpuInstruction, Total]) -> None:
    """Add the operations of one thread, each without the operations inside it."""
    around: list[tuple[Span, CpuInstruction]] = []
    for span, instruction in sorted(found, key=lambda item: (item[0].start, -item[0].end)):
        while around and around[-1][0].end <= span.start:
            around.pop()
        seconds = NS * (span.end - span.start)
        operations[instruction].seconds += seconds
        operations[instruction].occurrences += 1
        if around:
            operations[around[-1][1]].seconds -= seconds
        around.append((span, instruction))


def _extent(spans: Iterable[Span]) -> float:
    return max(span.end for span in spans) - min(span.start for span in spans)


def _covered(spans: Iterable[Span]) -> float:
    """Length of the union of spans."""
    covered, reached = 0.0, float("-inf")
    for span in sorted(spans):
        covered += max(span.end - max(span.start, reached), 0.0)
        reached = max(reached, span.end)
    return covered
