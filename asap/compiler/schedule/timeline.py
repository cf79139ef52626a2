"""What a simulated schedule comes to: totals by category of operation and by kind of collective."""

from collections import defaultdict
from dataclasses import dataclass, field, replace
from typing import Literal

from asap.compiler.schedule.collectives import Execution

HostDirection = Literal["to", "from"]


@dataclass
class OperationTotals:
    """Operations of one category: count, seconds, and the count of those of which only the bytes are known."""

    count: float = 0.0
    seconds: float = 0.0
    unestimated: float = 0.0


@dataclass
class CollectiveTotals:
    """Collectives of one kind along the same mesh axes, all synchronous or all asynchronous. Bytes and seconds."""

    count: float = 0.0
    size: float = 0.0
    busy: float = 0.0
    exposed: float = 0.0
    algorithms: set[str] = field(default_factory=set)


@dataclass
class Timeline:
    """A step, or one run of a computation. Times are seconds."""

    seconds: float = 0.0
    operations: dict[str, OperationTotals] = field(default_factory=lambda: defaultdict(OperationTotals))
    collectives: dict[tuple[str, str, Execution], CollectiveTotals] = field(
        default_factory=lambda: defaultdict(CollectiveTotals)
    )
    host_seconds: dict[HostDirection, float] = field(default_factory=lambda: {"to": 0.0, "from": 0.0})
    notes: set[str] = field(default_factory=set)

    def include(self, other: "Timeline", times: float) -> None:
        """Add a computation that runs so many times."""
        self.seconds += other.seconds * times
        for category, done in other.operations.items():
            own = self.operations[category]
            self.operations[category] = OperationTotals(
                own.count + done.count * times,
                own.seconds + done.seconds * times,
                own.unestimated + done.unestimated * times,
            )
        for key, use in other.collectives.items():
            own = self.collectives[key]
            self.collectives[key] = replace(
                own,
                count=own.count + use.count * times,
                size=own.size + use.size * times,
                busy=own.busy + use.busy * times,
                exposed=own.exposed + use.exposed * times,
                algorithms=own.algorithms | use.algorithms,
            )
        for direction, seconds in other.host_seconds.items():
            self.host_seconds[direction] += seconds * times
        self.notes |= other.notes
