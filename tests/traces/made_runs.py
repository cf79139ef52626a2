"""Runs made to measure: a small simulator of hosts, streams and collectives that writes what Kineto would record.

The same run with other numbers is the truth that a what-if on the first one has to meet.
"""

import gzip
import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from asap.experiments import Experiment, ExperimentStore
from asap.study.open_study import open_study
from asap.study.study import Study

HOST, BACKWARD = 100, 200
COMPUTE, COMMUNICATION = 7, 20
LOADING = "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__"
WAIT = "cudaStreamWaitEvent"
LATENCY, GAP, CALL, RETURN = 4, 1, 5, 6


@dataclass(frozen=True)
class Run:
    """Times in microseconds."""

    layers: int = 4
    steps: int = 3
    kernel: int = 300
    host: int = 20
    loading: int = 400
    transfer: int = 200
    slow: Sequence[float] = (1.0, 1.0)
    """How much longer each rank computes."""
    overlaps: bool = True
    backward_thread: bool = False
    waits_recorded: bool = True
    late: int = 0
    """How much later than the others the last rank begins."""


@dataclass
class Rank:
    slow: float
    clock: int = 0
    now: int = 0
    free: dict[int, int] = field(default_factory=lambda: {COMPUTE: 0, COMMUNICATION: 0})
    events: list[dict[str, Any]] = field(default_factory=list)
    correlation: int = 0

    def call(self, name: str, thread: int = HOST, length: int = CALL) -> int:
        self.correlation += 1
        self.add("cuda_runtime", name, thread, self.now, length, correlation=self.correlation)
        self.now += length
        return self.now

    def add(self, category: str, name: str, thread: int, start: int, length: int, **arguments: Any) -> None:
        process = 0 if "stream" in arguments else 1
        event = {"ph": "X", "cat": category, "name": name, "pid": process, "tid": thread, "ts": start, "dur": length}
        self.events.append(event | {"args": arguments})

    def ran(self, call: tuple[str, int, int], kind: str, name: str, stream: int, start: int, length: int) -> None:
        self.correlation += 1
        self.add("cuda_runtime", call[0], HOST, *call[1:], correlation=self.correlation)
        self.add(kind, name, stream, start, length, stream=stream, device=0, correlation=self.correlation)


def simulate(run: Run, clocks: Sequence[int] = ()) -> list[list[dict[str, Any]]]:
    """Events of each rank; ``clocks`` is how far ahead each rank's clock is."""
    ranks = [Rank(slow) for slow in run.slow]
    for rank in ranks:
        rank.now = 1000
    ranks[-1].now += run.late
    for step in range(run.steps):
        _step(run, ranks, step)
    for rank, ahead in zip(ranks, clocks, strict=False):
        for event in rank.events:
            event["ts"] += ahead
    return [[event for event in rank.events if run.waits_recorded or event["name"] != WAIT] for rank in ranks]


def _step(run: Run, ranks: list[Rank], step: int) -> None:
    begun = [rank.now for rank in ranks]
    for rank in ranks:
        rank.add("user_annotation", LOADING, HOST, rank.now, run.loading)
        rank.now += run.loading
    thread = BACKWARD if run.backward_thread else HOST
    for _ in range(run.layers):
        ends = [_compute(run, rank, thread) for rank in ranks]
        for rank in ranks:
            rank.call(WAIT, thread)
        _collective(run, ranks, ends, thread)
        if not run.overlaps:
            _wait_for_communication(ranks, thread)
    if run.backward_thread:
        for rank in ranks:
            rank.add("cpu_op", "autograd::engine::evaluate_function: MmBackward0", BACKWARD, begun[0] + run.loading, 50)
    _wait_for_communication(ranks, HOST)
    for rank, start in zip(ranks, begun, strict=True):
        _launch(rank, "kernel", "optimizer_kernel", COMPUTE, 50, HOST)
        _read_back(rank)
        rank.add("user_annotation", f"ProfilerStep#{step}", HOST, start, rank.now - start)


def _compute(run: Run, rank: Rank, thread: int) -> int:
    rank.now += run.host
    return _launch(rank, "kernel", "ampere_sgemm_128x64_nn", COMPUTE, round(run.kernel * rank.slow), thread)


def _launch(rank: Rank, category: str, name: str, stream: int, length: int, thread: int) -> int:
    launched = rank.call("cudaLaunchKernel", thread)
    start = max(launched + LATENCY, rank.free[stream] + GAP)
    rank.add(category, name, stream, start, length, stream=stream, device=0, correlation=rank.correlation)
    rank.free[stream] = start + length
    return start + length


def _collective(run: Run, ranks: list[Rank], computed: list[int], thread: int) -> None:
    starts = []
    for rank, end in zip(ranks, computed, strict=True):
        launched = rank.call("cudaLaunchKernel", thread)
        starts.append(max(launched + LATENCY, rank.free[COMMUNICATION] + GAP, end))
    finish = max(starts) + run.transfer
    for rank, start in zip(ranks, starts, strict=True):
        arguments = {"stream": COMMUNICATION, "device": 0, "correlation": rank.correlation}
        rank.add("kernel", "ncclDevKernel_AllReduce_Sum_f32_RING_LL", COMMUNICATION, start, finish - start, **arguments)
        rank.free[COMMUNICATION] = finish


def _wait_for_communication(ranks: list[Rank], thread: int) -> None:
    for rank in ranks:
        rank.call(WAIT, thread)
        rank.free[COMPUTE] = max(rank.free[COMPUTE], rank.free[COMMUNICATION] - GAP)


def _read_back(rank: Rank) -> None:
    begun, start = rank.now, max(rank.now + 3, rank.free[COMPUTE] + GAP)
    rank.free[COMPUTE] = start + 2
    rank.now = start + 2 + RETURN
    call = ("cudaMemcpyAsync", begun, rank.now - begun)
    rank.ran(call, "gpu_memcpy", "Memcpy DtoH (Device -> Pageable)", COMPUTE, start, 2)


def study_of(folder: Path, **record: Any) -> Study:
    """The study of a run on record."""
    store = ExperimentStore(folder)
    store.add(Experiment(id="mine", **record))
    return open_study("mine", store)


def write(folder: Path, ranks: Sequence[list[dict[str, Any]]], **header: Any) -> Path:
    """A file a rank, compressed."""
    folder.mkdir(parents=True, exist_ok=True)
    for number, events in enumerate(ranks):
        told = {
            "distributedInfo": {"rank": number, "world_size": len(ranks)},
            "deviceProperties": [{"name": "NVIDIA A100"}],
        }
        document = {"schemaVersion": 1, **told, **header, "traceEvents": events}
        data = gzip.compress(json.dumps(document).encode(), 1)
        (folder / f"rank{number}.json.gz").write_bytes(data)
    return folder


def unexplained() -> list[list[dict]]:
    """A run whose kernels start long after anything that explains it."""
    (events,) = simulate(Run(slow=(1.0,)))
    return [[event | {"ts": 11 * event["ts"]} if event["cat"] == "kernel" else event for event in events]]
