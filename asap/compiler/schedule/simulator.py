"""Step time by simulating the schedule.

Instructions run one after the other, each for its matmul time or its memory time, whichever is longer. The compiler's
machine code agrees with that, its estimated cycles do not (docs/verify-measurements.md). A synchronous collective
blocks; an asynchronous one occupies its torus directions from its start, and blocks at its end for what is left of it.
Loops count as often as they run.

Transfers to and from host memory are assumed hidden, as in the published profile of a MaxText run that offloads its
activations ("13.6k async-copy events fully pipelined behind compute", less than 0.1 % of the step; its source is in
``attention_kernels.py``). A step is never shorter than its host transfers in one direction.
"""

from collections import defaultdict
from dataclasses import dataclass, field, replace
from typing import Literal

from asap.compiler.schedule.collectives import NO_AXES, CollectiveEvent, CollectiveReader, Execution, Transfer
from asap.compiler.schedule.hlo import Computation, Instruction, Module, trip_count
from asap.compiler.schedule.interconnect import DeviceRates, TorusDirection
from asap.compiler.schedule.operation_cost import operation_category, operation_seconds

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


_FREE = (
    "parameter", "get-tuple-element", "tuple", "bitcast", "constant", "partition-id", "replica-id", "after-all",
    "send", "send-done",
)  # fmt: skip
_KERNEL = "tpu_custom_call"
_HOST_SPACE = 5
UNCOUNTED = "is unknown: it is counted once"
"""End of the note on a loop, with which a step time is too short."""


@dataclass
class _ScheduleState:
    """One run of a computation: what is in flight, and when each resource is free again (seconds)."""

    timeline: Timeline = field(default_factory=Timeline)
    in_flight: dict[str, tuple[Transfer, float]] = field(default_factory=dict)
    copies_done_at: dict[str, float] = field(default_factory=dict)
    direction_free_at: dict[TorusDirection, float] = field(default_factory=dict)
    hbm_free_at: float = 0.0


@dataclass(frozen=True)
class ScheduleSimulator:
    """Simulates the schedule of one program on one device."""

    module: Module
    collectives: CollectiveReader
    rates: DeviceRates

    def run(self) -> Timeline:
        """The timeline of one step."""
        timeline = self._simulate(self.module.entry)
        longest = max(timeline.host_seconds.values())
        if longest > timeline.seconds:
            timeline.operations["waiting for host memory"] = OperationTotals(1, longest - timeline.seconds)
            timeline.seconds = longest
        return timeline

    def _simulate(self, computation: Computation) -> Timeline:
        state = _ScheduleState()
        for instruction in computation.instructions:
            self._advance(state, instruction, computation)
        return state.timeline

    def _advance(self, state: _ScheduleState, instruction: Instruction, computation: Computation) -> None:
        opcode = instruction.opcode
        if opcode in _FREE or (opcode == "custom-call" and instruction.attribute("custom_call_target") != _KERNEL):
            return
        if opcode in ("while", "call", "conditional"):
            self._nested(state, instruction)
        elif opcode in ("copy-start", "slice-start", "dynamic-slice-start", "dynamic-update-slice-start"):
            self._start_copy(state, instruction)
        elif instruction.operands and instruction.operands[0] in state.copies_done_at:
            self._wait(state, "waiting for memory", state.copies_done_at.pop(instruction.operands[0]))
        elif (event := self.collectives.read(instruction)) is not None:
            self._communicate(state, event, instruction)
        else:
            self._compute(state, instruction, computation)

    def _nested(self, state: _ScheduleState, instruction: Instruction) -> None:
        timeline = state.timeline
        if instruction.opcode == "while":
            body, passes = self.module.callee(instruction, "body"), trip_count(self.module, instruction)
            if passes is None:
                timeline.notes.add(f"the trip count of {instruction.name} {UNCOUNTED}")
            if body:
                timeline.include(self._simulate(body), 1 if passes is None else passes)
            return
        called = [n.strip("%{} ") for n in instruction.attributes.replace("=", ",").split(",")]
        branches = [self._simulate(self.module.computations[n]) for n in called if n in self.module.computations]
        if branches:
            timeline.include(max(branches, key=lambda branch: branch.seconds), 1)

    def _start_copy(self, state: _ScheduleState, instruction: Instruction) -> None:
        arrays = [shape for shape in instruction.shapes if shape.dims]
        size = min((shape.size for shape in arrays), default=0)
        if any(shape.space == _HOST_SPACE for shape in arrays):
            to_host = instruction.opcode == "dynamic-update-slice-start" or (
                instruction.opcode == "copy-start" and arrays[0].space == _HOST_SPACE
            )
            self._host_transfer(state, "to" if to_host else "from", size)
            state.copies_done_at[instruction.name] = state.timeline.seconds
            return
        state.hbm_free_at = max(state.timeline.seconds, state.hbm_free_at) + size / self.rates.hbm_bandwidth
        state.copies_done_at[instruction.name] = state.hbm_free_at

    def _host_transfer(self, state: _ScheduleState, direction: HostDirection, size: int) -> None:
        if self.rates.host_bandwidth is None:
            state.timeline.notes.add("the host bandwidth of this chip is not published: host transfers take no time")
        else:
            state.timeline.host_seconds[direction] += size / self.rates.host_bandwidth

    def _communicate(self, state: _ScheduleState, event: CollectiveEvent, instruction: Instruction) -> None:
        if event.action == "done":
            if started := state.in_flight.pop(event.key, None):
                waited = self._wait(state, None, started[1])
                self._totals(state, started[0], "asynchronous").exposed += waited
            return
        transfer = event.transfer
        if transfer is None:
            state.timeline.notes.add(
                f"the devices of a collective cannot be read ({instruction.opcode}): it takes no time"
            )
            return
        if transfer.axes == NO_AXES:
            return
        free = (state.direction_free_at.get(direction, 0.0) for direction in transfer.directions)
        start = max([state.timeline.seconds, *free])
        end = start + transfer.seconds
        for direction, share in transfer.directions.items():
            state.direction_free_at[direction] = start + share * transfer.seconds
        totals = self._totals(state, transfer, "asynchronous" if event.action == "start" else "synchronous")
        totals.count += 1
        totals.size += transfer.size
        totals.busy += transfer.seconds
        totals.algorithms |= {transfer.algorithm} - {""}
        if event.action == "start":
            state.in_flight[event.key] = (transfer, end)
        else:
            totals.exposed += self._wait(state, None, end)

    def _totals(self, state: _ScheduleState, transfer: Transfer, execution: Execution) -> CollectiveTotals:
        return state.timeline.collectives[(transfer.kind, transfer.axes, execution)]

    def _wait(self, state: _ScheduleState, category: str | None, until: float) -> float:
        waited = max(until - state.timeline.seconds, 0.0)
        state.timeline.seconds += waited
        if category and waited:
            work = state.timeline.operations[category]
            work.count, work.seconds = work.count + 1, work.seconds + waited
        return waited

    def _compute(self, state: _ScheduleState, instruction: Instruction, computation: Computation) -> None:
        seconds, estimated = operation_seconds(self.module, instruction, computation, self.rates)
        work = state.timeline.operations[operation_category(self.module, instruction)]
        work.count += 1
        work.seconds += seconds
        work.unestimated += 0 if estimated else 1
        state.timeline.seconds += seconds
