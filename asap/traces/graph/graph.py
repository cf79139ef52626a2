"""Moments and what each of them waits for; replaying it is one longest-path pass.

A node is the start or the end of a host call, of a device operation or of a step, or the moment at which the last rank
has come to a collective. An edge says that its target comes
no earlier than ``weight`` nanoseconds after its source. Nodes are numbered in the order in which they were measured, so
edges run from lower to higher numbers; node 0 is the start of the trace.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import IntEnum
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from asap.traces.trace import Integers, Trace

ROOT = 0


class Cause(IntEnum):
    """Why the target of an edge waits for its source."""

    BEGIN = 0
    """The recording began; nothing in it says what came before."""
    HOST = 1
    """A thread does one thing after the other."""
    LAUNCH = 2
    """The device runs what the host has launched."""
    DURATION = 3
    """The operation takes its time."""
    STREAM = 4
    """A stream runs one operation after the other."""
    WAIT = 5
    """A stream waits for another one."""
    BLOCKED = 6
    """A host call returns when the device is done."""
    COLLECTIVE = 7
    """A collective ends for all when the last has come and the data is over."""
    INFERRED = 8
    """Nothing recorded explains the delay, but an operation of another stream had just ended."""
    UNSEEN = 9
    """A transfer waits for another stage of the pipeline, whose rank is not at hand."""


@dataclass(frozen=True, eq=False)
class Edges:
    """Edges as columns."""

    source: Integers
    target: Integers
    weight: Integers
    cause: Integers

    @classmethod
    def of(cls, source: Integers, target: Integers, weight: Integers | int, cause: Cause) -> "Edges":
        """Edges of one cause."""
        count = len(source)
        return cls(
            np.asarray(source, dtype=np.int64), np.asarray(target, dtype=np.int64),
            np.broadcast_to(np.asarray(weight, dtype=np.int64), count), np.full(count, cause, dtype=np.int64),
        )  # fmt: skip

    @classmethod
    def join(cls, parts: "Sequence[Edges]") -> "Edges":
        """All of them in one."""
        columns = zip(*((part.source, part.target, part.weight, part.cause) for part in parts), strict=True)
        return cls(*(np.concatenate(column) for column in columns))

    def __len__(self) -> int:
        return len(self.source)

    def take(self, rows: NDArray[np.bool_] | Integers) -> "Edges":
        """Some of them."""
        return Edges(self.source[rows], self.target[rows], self.weight[rows], self.cause[rows])


@dataclass(frozen=True, eq=False)
class RankNodes:
    """The nodes of one rank: one for each row of its calls, operations and steps.

    ``operation_met`` is when the other ranks have come to a collective, the start of all other operations.
    """

    call_start: Integers
    call_end: Integers
    operation_start: Integers
    operation_end: Integers
    operation_met: Integers
    step_start: Integers
    step_end: Integers

    def renumbered(self, number: Integers) -> "RankNodes":
        """The same nodes under their new numbers."""
        return RankNodes(*(number[nodes] for nodes in vars(self).values()))


@dataclass(frozen=True, eq=False)
class Graph:
    """The execution graph of all ranks.

    ``measured`` is when each node was, in nanoseconds. Edges are ordered by target.
    """

    trace: Trace
    measured: Integers
    edges: Edges
    nodes: Sequence[RankNodes]
    blocked: Sequence[Integers] = ()
    """For each rank its calls that waited for the device."""

    @cached_property
    def replayed(self) -> Integers:
        """When each node is, if it comes as soon as everything that it waits for allows."""
        return longest_path(len(self.measured), self.edges)

    @property
    def unseen(self) -> NDArray[np.bool_]:
        """Edges that wait for stages of a pipeline that are not at hand."""
        return self.edges.cause == Cause.UNSEEN

    def with_edges(self, edges: Edges) -> "Graph":
        """The same moments, waiting for other things."""
        return replace(self, edges=edges)

    def with_weights(self, weight: Integers) -> "Graph":
        """The same graph with other times."""
        return self.with_edges(replace(self.edges, weight=weight))

    def with_waits(self, factor: float) -> "Graph":
        """The same graph, in which other stages are waited for ``factor`` times as long."""
        weight = self.edges.weight.copy()
        weight[self.unseen] = np.rint(factor * weight[self.unseen])
        return self.with_weights(weight)


def longest_path(nodes: int, edges: Edges) -> Integers:
    """Time of each node: the latest that one of its edges asks for. Edges must be ordered by target, sources first."""
    time = [0] * nodes
    for source, target, weight in zip(edges.source.tolist(), edges.target.tolist(), edges.weight.tolist(), strict=True):
        earliest = time[source] + weight
        if earliest > time[target]:
            time[target] = earliest
    return np.array(time, dtype=np.int64)
