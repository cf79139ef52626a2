"""Step time from a timeline over the schedule.

Instructions run one after the other, each as long as its matrix products or its bytes take, whichever is more. That is
what the machine code of the compiler comes to as well, unlike its estimated cycles (docs/verify.md). A synchronous
collective stops the clock; an asynchronous one holds its torus axes from its start on, and only what is left of it at
its end stops the clock. Loops count as often as they run.

What goes to host memory and comes back is taken to be hidden: in the published profile of a MaxText run that offloads
its activations ("13.6k async-copy events fully pipelined behind compute", less than 0.1 % of the step; the source is in
``kernels.py``). A step is never shorter than its transfers in one direction.
"""

from collections import defaultdict
from dataclasses import dataclass, field, replace
from typing import Literal

from asap.compiler.accesses import accesses
from asap.compiler.hlo import Computation, Instruction, Module
from asap.compiler.kernels import kernel_seconds
from asap.compiler.links import Lane
from asap.compiler.loops import trips
from asap.compiler.products import product_flops
from asap.compiler.rates import Rates
from asap.compiler.transfers import NOWHERE, Form, Reader, Step, Transfer

_FREE = (
    "parameter", "get-tuple-element", "tuple", "bitcast", "constant", "partition-id", "replica-id", "after-all",
    "send", "send-done",
)  # fmt: skip
_MOVES = ("copy", "slice", "dynamic-slice", "dynamic-update-slice", "transpose", "reshape", "broadcast", "pad")
_KERNEL = "tpu_custom_call"
_HOST_SPACE = 5

Way = Literal["to", "from"]


@dataclass
class Work:
    """Operations of one category: how often, how long, and of how many only the bytes are known."""

    count: float = 0.0
    seconds: float = 0.0
    unestimated: float = 0.0


@dataclass
class Use:
    """One kind of collective along one mesh axis, in one form."""

    count: float = 0.0
    size: float = 0.0
    busy: float = 0.0
    exposed: float = 0.0
    algorithms: set[str] = field(default_factory=set)


@dataclass
class Timeline:
    """A step, or one pass through a computation. Times are seconds."""

    seconds: float = 0.0
    work: dict[str, Work] = field(default_factory=lambda: defaultdict(Work))
    collectives: dict[tuple[str, str, Form], Use] = field(default_factory=lambda: defaultdict(Use))
    host: dict[Way, float] = field(default_factory=lambda: {"to": 0.0, "from": 0.0})
    notes: set[str] = field(default_factory=set)

    def include(self, other: "Timeline", times: float) -> None:
        """Add another computation that runs so many times."""
        self.seconds += other.seconds * times
        for category, done in other.work.items():
            mine = self.work[category]
            self.work[category] = Work(
                mine.count + done.count * times,
                mine.seconds + done.seconds * times,
                mine.unestimated + done.unestimated * times,
            )
        for key, use in other.collectives.items():
            mine = self.collectives[key]
            self.collectives[key] = replace(
                mine,
                count=mine.count + use.count * times,
                size=mine.size + use.size * times,
                busy=mine.busy + use.busy * times,
                exposed=mine.exposed + use.exposed * times,
                algorithms=mine.algorithms | use.algorithms,
            )
        self.host = {way: seconds + other.host[way] * times for way, seconds in self.host.items()}
        self.notes |= other.notes


@dataclass
class _Pass:
    """State of one pass through a computation: what is under way, and when each lane of the torus is free again."""

    timeline: Timeline = field(default_factory=Timeline)
    open: dict[str, tuple[Transfer, float]] = field(default_factory=dict)
    copies: dict[str, float] = field(default_factory=dict)
    lane_free: dict[Lane, float] = field(default_factory=dict)
    memory_free: float = 0.0


@dataclass(frozen=True)
class Simulator:
    """Walks the schedule of one program on one device."""

    module: Module
    reader: Reader
    rates: Rates

    def run(self) -> Timeline:
        """The timeline of the whole step."""
        timeline = self._through(self.module.entry)
        longest = max(timeline.host.values())
        if longest > timeline.seconds:
            timeline.work["waiting for host memory"] = Work(1, longest - timeline.seconds)
            timeline.seconds = longest
        return timeline

    def _through(self, computation: Computation) -> Timeline:
        state = _Pass()
        for instruction in computation.instructions:
            self._advance(state, instruction, computation)
        return state.timeline

    def _advance(self, state: _Pass, instruction: Instruction, computation: Computation) -> None:
        opcode = instruction.opcode
        if opcode in _FREE or (opcode == "custom-call" and instruction.attribute("custom_call_target") != _KERNEL):
            return
        if opcode in ("while", "call", "conditional"):
            self._nested(state, instruction)
        elif opcode in ("copy-start", "slice-start", "dynamic-slice-start", "dynamic-update-slice-start"):
            self._start_copy(state, instruction)
        elif instruction.operands and instruction.operands[0] in state.copies:
            self._wait(state, "waiting for memory", state.copies.pop(instruction.operands[0]))
        elif (step := self.reader.read(instruction)) is not None:
            self._communicate(state, step, instruction)
        else:
            self._compute(state, instruction, computation)

    def _nested(self, state: _Pass, instruction: Instruction) -> None:
        timeline = state.timeline
        if instruction.opcode == "while":
            body, passes = self.module.callee(instruction, "body"), trips(self.module, instruction)
            if passes is None:
                timeline.notes.add(f"how often {instruction.name} runs is not known; it is counted once")
            if body:
                timeline.include(self._through(body), 1 if passes is None else passes)
            return
        names = [n.strip("%{} ") for n in instruction.attributes.replace("=", ",").split(",")]
        branches = [self._through(self.module.computations[n]) for n in names if n in self.module.computations]
        if branches:
            timeline.include(max(branches, key=lambda branch: branch.seconds), 1)

    def _start_copy(self, state: _Pass, instruction: Instruction) -> None:
        arrays = [shape for shape in instruction.shapes if shape.dims]
        size = min((shape.size for shape in arrays), default=0)
        if any(shape.space == _HOST_SPACE for shape in arrays):
            leaves = instruction.opcode == "dynamic-update-slice-start" or (
                instruction.opcode == "copy-start" and arrays[0].space == _HOST_SPACE
            )
            self._visit_host(state, "to" if leaves else "from", size)
            state.copies[instruction.name] = state.timeline.seconds
            return
        state.memory_free = max(state.timeline.seconds, state.memory_free) + size / self.rates.hbm_bandwidth
        state.copies[instruction.name] = state.memory_free

    def _visit_host(self, state: _Pass, way: Way, size: int) -> None:
        if self.rates.host_bandwidth is None:
            state.timeline.notes.add("how fast this chip reaches host memory is not published: that takes no time here")
        else:
            state.timeline.host[way] += size / self.rates.host_bandwidth

    def _communicate(self, state: _Pass, step: Step, instruction: Instruction) -> None:
        if step.action == "done":
            if opened := state.open.pop(step.chain, None):
                waited = self._wait(state, None, opened[1])
                self._use(state, opened[0], "asynchronous").exposed += waited
            return
        transfer = step.transfer
        if transfer is None:
            state.timeline.notes.add(
                f"the devices of a collective cannot be read ({instruction.opcode}); it has no time"
            )
            return
        if transfer.axes == NOWHERE:
            return
        begin = max([state.timeline.seconds, *(state.lane_free.get(lane, 0.0) for lane in transfer.lanes)])
        end = begin + transfer.seconds
        state.lane_free.update({lane: begin + share * transfer.seconds for lane, share in transfer.lanes.items()})
        use = self._use(state, transfer, "asynchronous" if step.action == "start" else "synchronous")
        use.count += 1
        use.size += transfer.size
        use.busy += transfer.seconds
        use.algorithms |= {transfer.algorithm} - {""}
        if step.action == "start":
            state.open[step.chain] = (transfer, end)
        else:
            use.exposed += self._wait(state, None, end)

    def _use(self, state: _Pass, transfer: Transfer, form: Form) -> Use:
        return state.timeline.collectives[(transfer.kind, transfer.axes, form)]

    def _wait(self, state: _Pass, category: str | None, until: float) -> float:
        waited = max(until - state.timeline.seconds, 0.0)
        state.timeline.seconds += waited
        if category and waited:
            work = state.timeline.work[category]
            work.count, work.seconds = work.count + 1, work.seconds + waited
        return waited

    def _compute(self, state: _Pass, instruction: Instruction, computation: Computation) -> None:
        seconds, estimated = self._cost(instruction, computation)
        work = state.timeline.work[self._category(instruction)]
        work.count += 1
        work.seconds += seconds
        work.unestimated += 0 if estimated else 1
        state.timeline.seconds += seconds

    def _cost(self, instruction: Instruction, computation: Computation) -> tuple[float, bool]:
        """Seconds, and whether they are known: of a kernel that is not, only its bytes are."""
        kernel = instruction.opcode == "custom-call"
        seconds = kernel_seconds(instruction, self.rates) if kernel else None
        if seconds is not None:
            return seconds, True
        products = self.rates.product_seconds(product_flops(self.module, instruction, computation))
        transfers = self.rates.transfer_seconds(accesses(self.module, instruction, computation))
        return max(products, transfers), not kernel

    def _category(self, instruction: Instruction) -> str:
        if instruction.opcode == "custom-call":
            return "kernels"
        inside = {inner.opcode for inner in self.module.inside(instruction)} | {instruction.opcode}
        if inside & {"convolution", "dot"}:
            return "matrix products"
        if inside & {"gather", "scatter", "sort"}:
            return "gathers and scatters"
        active = inside - {"fusion", "parameter", "constant", "bitcast"}
        return "moving data" if active and active <= set(_MOVES) else "elementwise"
