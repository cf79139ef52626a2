"""Classes of a trace's operations that another run changes alike, and the graph with each of them scaled."""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from asap.prediction.from_trace.factors import Factors
from asap.traces.graph.graph import Cause, Graph
from asap.traces.operations import ANY_COLLECTIVE, collective_kind, compute_class
from asap.traces.trace import Integers, OperationKind, RankTrace
from asap.traces.what_if.apply import Changed

PRODUCTS, MEMORY, COMPUTE, HOST = "products", "memory", "compute", "host"
_PRODUCTS = ("matmul", "attention", "convolution")
_NONE = -1


@dataclass(frozen=True, eq=False)
class Classes:
    """The class of each edge of a graph, as an index into ``names``; -1 where no class decides its weight."""

    names: Sequence[str]
    edge: Integers
    transfer_share: float


def classes_of(graph: Graph) -> Classes:
    """The classes of a graph: matrix products, what is bound by HBM, each kind of collective, what hosts do."""
    labels = [_labels(rank) for rank in graph.trace.ranks]
    names = sorted({name for each in labels for name in np.unique(each).tolist()} | {HOST})
    started, ended = (np.full(len(graph.measured), _NONE) for _ in range(2))
    for mine, nodes in zip(labels, graph.nodes, strict=True):
        number = np.searchsorted(names, mine)
        started[nodes.operation_start] = ended[nodes.operation_end] = number
    edges = graph.edges
    own = np.isin(edges.cause, (Cause.DURATION, Cause.COLLECTIVE))
    from_start = np.isin(edges.cause, (Cause.INFERRED, Cause.STREAM))
    found = np.where(own, ended[edges.target], np.where(from_start, started[edges.source], _NONE))
    found = np.where(edges.cause == Cause.HOST, names.index(HOST), found)
    return Classes(names, found, _transfer_share(graph))


def scaled_by(changed: Changed, classes: Classes, factors: Factors) -> Changed:
    """Each class takes its time times its factor."""
    factor = np.array([*(_factor(factors, name, classes.transfer_share) for name in classes.names), 1.0])
    graph = changed.graph
    weight = np.rint(graph.edges.weight * factor[classes.edge]).astype(np.int64)
    return Changed(graph.with_weights(weight), changed.scaled | (classes.edge != _NONE))


def _labels(rank: RankTrace) -> NDArray[np.str_]:
    """The class of each operation. Where no name says what a product is, all computation is one class."""
    computing = rank.operations.kind == OperationKind.COMPUTE
    kinds = [compute_class(name) for name in rank.names]
    named = any(kinds[number] in _PRODUCTS for number in np.unique(rank.operations.name[computing]).tolist())
    computes = [(PRODUCTS if kind in _PRODUCTS else MEMORY) if named else COMPUTE for kind in kinds]
    communicates = [collective_kind(name) or ANY_COLLECTIVE for name in rank.names]
    by_kind = (np.array(each)[rank.operations.name] for each in (communicates, computes))
    communication, compute = by_kind
    found = np.where(rank.operations.kind == OperationKind.COMMUNICATION, communication, MEMORY)
    return np.where(computing, compute, found)


def _transfer_share(graph: Graph) -> float:
    """Of the time of collectives, what moves data; the rest waits for other ranks, and follows what they compute.

    Matched collectives hold their transfer alone. Of others, what takes the shortest of all ranks is the transfer. From
    one rank alone it cannot be told, and all of it counts as transfer.
    """
    ranks = graph.trace.ranks
    if graph.matched or len(ranks) < 2:
        return 1.0
    times: dict[str, list[Integers]] = defaultdict(list)
    for rank in ranks:
        events = rank.operations
        for number in np.unique(events.name[events.kind == OperationKind.COMMUNICATION]).tolist():
            mine = events.name == number
            times[str(rank.names[number])].append((events.end - events.start)[mine])
    alike = [found for found in times.values() if len({len(each) for each in found}) == 1 and len(found) == len(ranks)]
    whole = sum(float(np.mean(found, axis=0).sum()) for found in alike)
    return sum(float(np.min(found, axis=0).sum()) for found in alike) / whole if whole else 1.0


def _factor(found: Factors, name: str, share: float) -> float:
    if name in (PRODUCTS, MEMORY, COMPUTE, HOST):
        return float(getattr(found, name))
    return share * found.collective(name) + (1 - share) * found.compute
