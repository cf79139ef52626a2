"""The passes of a pipeline in time: which device works on which microbatch when, under each schedule.

Each device has its forwards in a fixed order and its backwards in another, and takes the first that can start: a
forward while the schedule lets it hold another activation, then a backward, then gradients of weights.

Schedules: GPipe (arXiv:1811.06965), 1F1B and interleaved stages (arXiv:2104.04473), ZB-H1 (arXiv:2401.10241), DualPipe
(arXiv:2412.19437), whose devices hold a stage from each end and send half of the microbatches either way.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from enum import StrEnum
from functools import lru_cache
from typing import NamedTuple


class Schedule(StrEnum):
    """Schedules of a pipeline."""

    GPIPE = "gpipe"
    ONE_F_ONE_B = "1f1b"
    INTERLEAVED = "interleaved"
    ZERO_BUBBLE = "zero-bubble"
    DUALPIPE = "dualpipe"


SPLIT = (Schedule.ZERO_BUBBLE, Schedule.DUALPIPE)
"""Gradients of weights are passes of their own."""


class Pipeline(NamedTuple):
    """Stages, one a device; microbatches; parts of a stage that a device runs in turn, where stages are interleaved."""

    stages: int
    microbatches: int
    schedule: Schedule = Schedule.ONE_F_ONE_B
    repeats: int = 1


class Pass(NamedTuple):
    """One microbatch in one part of the model: ``forward``, ``backward`` or ``weights``; ``way`` is 1 if it comes from
    the other end. A forward pass through all parts of a stage takes 1."""

    kind: str
    way: int
    part: int
    microbatch: int
    device: int
    start: float = 0.0
    end: float = 0.0

    @property
    def key(self) -> tuple[str, int, int, int]:
        """Which it is, whenever it runs."""
        return self[:4]


@dataclass
class _Queue:
    """What a device has still to do for the microbatches that come from one end, first things first."""

    forwards: list[Pass]
    backwards: list[Pass]
    most_held: int
    weights: list[Pass] = field(default_factory=list)
    held: int = 0

    @property
    def first(self) -> Iterator[tuple[int, Pass]]:
        """The first of each kind; the lower number goes first where both can start."""
        if self.forwards and self.held < self.most_held:
            yield 0, self.forwards[0]
        yield from ((rank, queue[0]) for rank, queue in enumerate((self.backwards, self.weights), 1) if queue)

    def take(self, begun: Pass, split: bool) -> None:
        """It is begun."""
        {"forward": self.forwards, "backward": self.backwards, "weights": self.weights}[begun.kind].pop(0)
        self.held += {"forward": 1, "backward": -1, "weights": 0}[begun.kind]
        if begun.kind == "backward" and split:
            self.weights.append(begun._replace(kind="weights"))


@lru_cache(maxsize=1024)
def bubble_share(pipeline: Pipeline, computes_again: bool = False) -> float:
    """The bubble over what a device works on one microbatch, where transfers take no time.

    Once the pipeline is full it does not grow with microbatches, and four to a stage fill it.
    """
    stages, count = pipeline.stages, pipeline.microbatches
    count, work = min(count, 4 * stages + count % stages), 4.0 if computes_again else 3.0
    found = passes(pipeline._replace(microbatches=count), computes_again)
    return max(each.end for each in found) / work - count


def passes(pipeline: Pipeline, computes_again: bool = False) -> list[Pass]:
    """All passes of a step, in the order in which they start; gradients of inputs and of weights take 1 each, and so
    does what is ``computed again`` for them."""
    split, last = pipeline.schedule in SPLIT, pipeline.stages * pipeline.repeats - 1
    backward = (2.0 if computes_again else 1.0) + (0.0 if split else 1.0)
    lengths = {"forward": 1.0, "backward": backward, "weights": 1.0}
    devices = [_queues(pipeline, number) for number in range(pipeline.stages)]
    free, ends, found = [0.0] * pipeline.stages, dict[tuple[str, int, int, int], float](), list[Pass]()
    while ready := [
        (max([free[each.device], *(ends[key] for key in _needs(each, last))]), rank, each)
        for queues in devices
        for queue in queues
        for rank, each in queue.first
        if all(key in ends for key in _needs(each, last))
    ]:
        start, _, begun = min(ready)
        devices[begun.device][begun.way].take(begun, split)
        end = free[begun.device] = ends[begun.key] = start + lengths[begun.kind] / pipeline.repeats
        found.append(begun._replace(start=start, end=end))
    return found


def _needs(each: Pass, last: int) -> list[tuple[str, int, int, int]]:
    """What has to be done before a pass."""
    kind, way, part, microbatch = each.key
    if kind == "forward":
        return [("forward", way, part - 1, microbatch)] if part else []
    own = ("forward", way, part, microbatch)
    return [own, ("backward", way, part + 1, microbatch)] if kind == "backward" and part < last else [own]


def _queues(pipeline: Pipeline, device: int) -> list[_Queue]:
    """What a device has to do: from one end, or with DualPipe half of the microbatches from either."""
    stages, count, schedule, repeats = pipeline
    held = {Schedule.GPIPE: count, Schedule.INTERLEAVED: 2 * (stages - device - 1) + (repeats - 1) * stages + 1}
    if schedule is not Schedule.DUALPIPE:
        return [_queue(pipeline, device, 0, device, held.get(schedule, stages - device))]
    halves = (pipeline._replace(microbatches=half) for half in ((count + 1) // 2, count // 2))
    places = (device, stages - 1 - device)
    return [_queue(half, device, way, places[way], stages - places[way]) for way, half in enumerate(halves)]


def _queue(pipeline: Pipeline, device: int, way: int, place: int, most_held: int) -> _Queue:
    """Microbatches in groups of as many as there are stages, each through one part of a device after the other."""
    stages, count, _, repeats = pipeline
    turns = [(each // stages, repeat, each % stages) for each in range(count) for repeat in range(repeats)]

    def ordered(kind: str, sign: int) -> list[Pass]:
        order = sorted(turns, key=lambda turn: (turn[0], sign * turn[1], turn[2]))
        return [Pass(kind, way, repeat * stages + place, group * stages + at, device) for group, repeat, at in order]

    return _Queue(ordered("forward", 1), ordered("backward", -1), most_held)
