"""A simulator of Megatron-LM on H100 for the truth: 1F1B, transfers between stages, tensor and data parallel groups,
gradients reduced in fp32 while the backward pass goes on, slow ranks and noise. It writes what Kineto would record.

It knows nothing of the replay: operations wait for their launch, their stream, events and the ranks of their group.
Kernels take a launch and their work at a rate that grows with their size; links have a latency and a bandwidth.
"""

import random
from collections import defaultdict, deque
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import pairwise
from statistics import median
from typing import Any

from tests.cases import kept

LAUNCH, LATENCY, GAP, ACROSS, SYNC = 6.0, 4.0, 1.0, 1.5, 8.0
"""Microseconds: a launch on the host, from launch to start, between kernels of a stream and of two, return from a
synchronisation."""
FLOPS, HBM = 989e6, 3.35e6
"""Of an H100, a microsecond."""
LINK, LINK_LATENCY = 3.0e5, 12.0
"""Bytes a microsecond on the slowest link of a group, microseconds until they flow."""
COMPUTE = 7
_NAMES = kept(__file__)["_NAMES"]
_DESCRIPTIONS = {
    "tp": "TENSOR_MODEL_PARALLEL_GROUP", "dp": "DATA_PARALLEL_GROUP", "pp": "PIPELINE_MODEL_PARALLEL_GROUP",
}  # fmt: skip


@dataclass(frozen=True)
class Job:
    """What is trained, how it is split, what goes wrong: ``micro`` sequences a microbatch, ``slow`` factors of ranks"""

    tp: int = 2
    dp: int = 2
    pp: int = 2
    layers: int = 8
    hidden: int = 4096
    sequence: int = 2048
    microbatches: int = 8
    micro: int = 1
    heads: int = 32
    vocab: int = 32000
    steps: int = 3
    matmul: float = 1.0
    link: float = 1.0
    """How long matrix products and transfers take, against usual."""
    slow: Mapping[int, float] = field(default_factory=dict)
    noise: float = 0.0
    seed: int = 0
    named: bool = True
    """Whether kernels name their groups."""

    @property
    def ranks(self) -> int:
        return self.tp * self.dp * self.pp

    def rank(self, tp: int, dp: int, pp: int) -> int:
        """Megatron's order: tensor, data, pipeline."""
        return tp + self.tp * (dp + self.dp * pp)


@dataclass
class _Operation:
    rank: int
    stream: int
    kind: str
    length: float
    waits: list[int]
    meets: tuple[Any, ...] | None = None
    said: Mapping[str, Any] = field(default_factory=dict)
    launched: float = 0.0
    start: float = 0.0
    end: float = 0.0
    call: int = 0


class _Rank:
    """Issues the operations of a rank in one step."""

    def __init__(self, job: Job, number: int, operations: list[_Operation], chance: random.Random):
        self.job, self.number, self.operations, self.chance = job, number, operations, chance
        self.tp, self.dp, self.pp = number % job.tp, number // job.tp % job.dp, number // job.tp // job.dp
        self.computed, self.awaited, self.tokens = -1, list[int](), job.micro * job.sequence
        self.counts: dict[Any, int] = defaultdict(int)

    def compute(self, kind: str, microseconds: float) -> None:
        length = (3.0 + microseconds) * self.job.slow.get(self.number, 1.0)
        self._add(COMPUTE, kind, length, self.awaited)
        self.computed, self.awaited = len(self.operations) - 1, []

    def matmul(self, rows: float, inner: float, columns: float, times: float = 1.0) -> None:
        filled = min(rows * columns / (132 * 128 * 256), 4.0)
        rate = FLOPS * 0.7 * filled / (filled + 0.4)
        self.compute("gemm", self.job.matmul * times * 2 * rows * inner * columns / rate)

    def moving(self, size: float) -> None:
        self.compute("elementwise", size / (0.8 * HBM))

    def reduce(self, axis: str, size: float, waited: bool = True) -> None:
        members = self._members(axis)
        if len(members) > 1:
            share = 2 * (len(members) - 1) / len(members)
            number = self._communicate(axis, "allreduce", members, share * size, size, {})
            self.awaited += [number] if waited else []

    def transfer(self, kind: str, to: int, size: float) -> None:
        """``send`` or ``recv`` with the stage ``to``."""
        peer = self.job.rank(self.tp, self.dp, to)
        stage = {"send": (self.pp, to), "recv": (to, self.pp)}[kind]
        ends = {"send": "Dst Rank", "recv": "Src Rank"}[kind]
        members = (*stage, self.tp, self.dp)
        number = self._communicate(("pp", stage), kind, members, size, size, {ends: peer})
        self.awaited += [number] if kind == "recv" else []

    def _members(self, axis: str) -> tuple[int, ...]:
        job = self.job
        if axis == "tp":
            return tuple(job.rank(each, self.dp, self.pp) for each in range(job.tp))
        if axis == "dp":
            return tuple(job.rank(self.tp, each, self.pp) for each in range(job.dp))
        return tuple(job.rank(self.tp, self.dp, each) for each in range(job.pp))

    def _communicate(self, axis: Any, kind: str, members: Any, moved: float, size: float, said: Any) -> int:
        key = (axis, members)
        self.counts[key] += 1
        name = axis if isinstance(axis, str) else axis[0]
        ranks = self._members(name)
        width = 4 if name == "dp" else 2
        sends_down = name == "pp" and axis[1][0] > axis[1][1]
        stream = {"tp": 20, "dp": 24}.get(name, 0) or 28 + 2 * int(axis[1][0]) + sends_down
        named = {
            "Collective name": kind, "In msg nelems": int(size / width), "Out msg nelems": int(size / width),
            "dtype": "Float" if name == "dp" else "BFloat16", "Group size": len(ranks),
            "Process Group Name": f"{name}{ranks[0]}",
            "Process Group Description": _DESCRIPTIONS[name], "Process Group Ranks": str(list(ranks)), **said,
        }  # fmt: skip
        length = self.job.link * (LINK_LATENCY + moved / LINK)
        waits = [self.computed] if self.computed >= 0 else []
        self._add(stream, kind, length, waits, (*key, self.counts[key]), named if self.job.named else {})
        return len(self.operations) - 1

    def _add(
        self, stream: int, kind: str, length: float, waits: list[int], meets: Any = None, said: Any = None
    ) -> None:
        length *= max(1 + self.job.noise * self.chance.gauss(0, 1), 0.2)
        self.operations.append(_Operation(self.number, stream, kind, length, list(waits), meets, said or {}))

    def step(self) -> None:
        """One-forward-one-backward (Narayanan et al. 2021)."""
        job = self.job
        warm = min(job.pp - self.pp - 1, job.microbatches)
        for _ in range(warm):
            self._forward()
        for number in range(job.microbatches - warm):
            self._forward()
            self._backward(warm + number + 1 > job.microbatches - 1 and warm == 0)
        for number in range(warm):
            self._backward(number == warm - 1)
        ends = job.vocab * job.hidden * ((self.pp == 0) + (self.pp == job.pp - 1))
        parameters = (12 * job.hidden**2 * self.layers + ends) / job.tp
        self.awaited += [n for n, each in enumerate(self.operations) if (each.rank, each.stream) == (self.number, 24)]
        self.compute("adam", 18 * parameters / (0.8 * HBM))

    @property
    def layers(self) -> int:
        return self.job.layers // self.job.pp

    @property
    def _activation(self) -> float:
        return 2.0 * self.tokens * self.job.hidden

    def _forward(self) -> None:
        job = self.job
        if self.pp > 0:
            self.transfer("recv", self.pp - 1, self._activation)
        else:
            self.moving(2 * self._activation)
        for _ in range(self.layers):
            self._layer(1.0)
        if self.pp == job.pp - 1:
            self._logits(1.0)
        else:
            self.transfer("send", self.pp + 1, self._activation)

    def _backward(self, last: bool) -> None:
        job = self.job
        if self.pp < job.pp - 1:
            self.transfer("recv", self.pp + 1, self._activation)
        else:
            self._logits(2.0)
            self._reduce_embedding() if last else None
        for _ in range(self.layers):
            self._layer(2.0)
            if last:
                self.reduce("dp", 4 * 12 * job.hidden**2 / job.tp, waited=False)
        if self.pp > 0:
            self.transfer("send", self.pp - 1, self._activation)
        elif last:
            self._reduce_embedding()

    def _logits(self, times: float) -> None:
        """To fp32, maximum, exponents and sum; their gradient takes as long (Megatron Core, cross_entropy.py)."""
        self.matmul(self.tokens, self.job.hidden, self.job.vocab / self.job.tp, times)
        self.moving(8 * self.tokens * self.job.vocab / self.job.tp)

    def _reduce_embedding(self) -> None:
        self.reduce("dp", 4 * self.job.vocab * self.job.hidden / self.job.tp, waited=False)

    def _layer(self, times: float) -> None:
        job, tokens, width = self.job, self.tokens, self.job.hidden
        self.moving(3 * times * self._activation)
        self.matmul(tokens, width, 3 * width / job.tp, times)
        attention = 2 * tokens * job.sequence * width / job.tp * (1.0 if times == 1.0 else 2.5)
        self.compute("flash", job.matmul * attention / (0.5 * FLOPS))
        self.matmul(tokens, width / job.tp, width, times)
        self.reduce("tp", self._activation)
        self.moving(3 * times * self._activation)
        self.matmul(tokens, width, 4 * width / job.tp, times)
        self.moving(8 * times * self._activation / job.tp)
        self.matmul(tokens, 4 * width / job.tp, width, times)
        self.reduce("tp", self._activation)


def seconds_of(job: Job) -> float:
    """Seconds of a step: median, from the last kernel to the last."""
    return simulate(job, recorded=False)[1]


def simulate(job: Job, *, recorded: bool = True) -> tuple[list[list[dict[str, Any]]], float]:
    """Kineto events of each rank, if they are recorded, and the time of a step in seconds."""
    chance = random.Random(job.seed)
    events: list[list[dict[str, Any]]] = [[] for _ in range(job.ranks)]
    host, calls, free = [1000.0] * job.ranks, [0] * job.ranks, defaultdict[tuple[int, int], float](float)
    ends = []
    for number in range(job.steps):
        operations: list[_Operation] = []
        for rank in range(job.ranks):
            _Rank(job, rank, operations, chance).step()
        begun = list(host)
        for each in operations:
            calls[each.rank] += 2
            each.call = calls[each.rank]
            host[each.rank] += LAUNCH
            each.launched = host[each.rank]
        _run(operations, free)
        for each in operations if recorded else ():
            events[each.rank] += _recorded(each)
        last = [max(each.end for each in operations if each.rank == rank) for rank in range(job.ranks)]
        for rank, end in enumerate(last):
            waited = max(host[rank], end) + SYNC
            calls[rank] += 2
            events[rank].append(_call("cudaDeviceSynchronize", host[rank], waited - host[rank], calls[rank]))
            host[rank] = waited + 20
            span = begun[rank], host[rank] - begun[rank]
            events[rank].append(_event("user_annotation", f"ProfilerStep#{number}", 1, 100, *span, {}))
        ends.append(max(last))
    times = [later - one for one, later in pairwise(ends)] or ends
    return events, median(times) * 1e-6


def _run(operations: list[_Operation], free: dict[tuple[int, int], float]) -> None:
    """When each operation starts and ends: none before what it waits for, none of a collective before all have come."""
    before: dict[tuple[int, int], int] = {}
    following, members = defaultdict[int, list[int]](list), defaultdict[Any, list[int]](list)
    missing = [0] * len(operations)
    for number, each in enumerate(operations):
        lane = each.rank, each.stream
        each.start = max(each.launched + LATENCY, free[lane] + GAP)
        sources = each.waits + ([before[lane]] if lane in before else [])
        for source in sources:
            following[source].append(number)
        missing[number] = len(sources)
        before[lane] = number
        members[each.meets or number].append(number)
    ready = deque(number for number, count in enumerate(missing) if not count)
    come: dict[Any, int] = defaultdict(int)
    while ready:
        key = operations[number].meets or number if (number := ready.popleft()) >= 0 else None
        come[key] += 1
        if come[key] < _expected(operations[number]):
            continue
        start = max(operations[each].start for each in members[key])
        for each in members[key]:
            done = operations[each]
            done.end = start + done.length if done.meets is None else start + operations[members[key][0]].length
            for target in following[each]:
                later = operations[target]
                gap = GAP if (later.rank, later.stream) == (done.rank, done.stream) else ACROSS
                later.start = max(later.start, done.end + gap)
                missing[target] -= 1
                if not missing[target]:
                    ready.append(target)
    for (rank, stream), number in before.items():
        free[rank, stream] = operations[number].end


def _expected(operation: _Operation) -> int:
    return 1 if operation.meets is None else 2 if operation.kind in ("send", "recv") else len(operation.meets[1])


def _recorded(each: _Operation) -> Iterator[dict[str, Any]]:
    if each.waits:
        yield _call("cudaStreamWaitEvent", each.launched - LAUNCH, 1.0, each.call - 1)
    yield _call("cudaLaunchKernel", each.launched - 4.0, 4.0, each.call)
    arguments = {"stream": each.stream, "device": 0, "correlation": each.call, **each.said}
    yield _event("kernel", _NAMES[each.kind], 0, each.stream, each.start, each.end - each.start, arguments)


def _call(name: str, start: float, length: float, correlation: int) -> dict[str, Any]:
    return _event("cuda_runtime", name, 1, 100, start, length, {"correlation": correlation})


def _event(
    category: str, name: str, process: int, lane: int, start: float, length: float, arguments: Any
) -> dict[str, Any]:
    times = {"ts": round(start, 3), "dur": round(length, 3)}
    return {"ph": "X", "cat": category, "name": name, "pid": process, "tid": lane, **times, "args": arguments}
