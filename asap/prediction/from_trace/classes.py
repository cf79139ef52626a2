"""Classes of a trace's operations that another run changes alike, and the graph with each of them scaled."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import cast

import numpy as np
from numpy.typing import NDArray

from asap.plans import Plan
from asap.plans.axes import Axis
from asap.prediction.from_trace.factors import Factors
from asap.prediction.from_trace.group_axes import axes_of
from asap.profiles.kernel_names import compute_class
from asap.traces.graph.graph import Cause, Graph
from asap.traces.operations import ANY_COLLECTIVE, collective_kind
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


def classes_of(graph: Graph, plan: Plan) -> Classes:
    """The classes of a graph: matrix products, what is bound by HBM, what hosts do, each kind of collective; those of
    named groups by the axes of the traced ``plan`` that they serve."""
    labels = [class_labels(rank, plan) for rank in graph.trace.ranks]
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
    return Classes(names, found)


def scaled_by(changed: Changed, classes: Classes, factors: Factors) -> Changed:
    """Each class takes its time times its factor."""
    factor = np.array([*(factor_of(factors, name, classes.names) for name in classes.names), 1.0])
    graph = changed.graph
    weight = np.rint(graph.edges.weight * factor[classes.edge]).astype(np.int64)
    return Changed(graph.with_weights(weight), changed.scaled | (classes.edge != _NONE))


def scaled_alike(changed: Changed, factor: float) -> Changed:
    """Everything takes its time times one factor."""
    weight = np.rint(changed.graph.edges.weight * factor).astype(np.int64)
    return Changed(changed.graph.with_weights(weight), np.ones_like(changed.scaled))


def class_labels(rank: RankTrace, plan: Plan | None = None) -> NDArray[np.str_]:
    """The class of each operation of a rank: of a collective its kind, then its axes if they are known.

    Where no name says what a product is, all computation is one class.
    """
    computing = rank.operations.kind == OperationKind.COMPUTE
    kinds = [compute_class(name) for name in rank.names]
    named = any(kinds[number] in _PRODUCTS for number in np.unique(rank.operations.name[computing]).tolist())
    computes = [(PRODUCTS if kind in _PRODUCTS else MEMORY) if named else COMPUTE for kind in kinds]
    communicates = [collective_kind(name) or ANY_COLLECTIVE for name in rank.names]
    by_kind = (np.array(each)[rank.operations.name] for each in (communicates, computes))
    communication, compute = by_kind
    if plan is not None:
        axes = ["".join(f" {axis}" for axis in axes_of(call.group.ranks, plan)) for call in rank.collectives]
        communication = np.char.add(communication, np.array([*axes, ""])[rank.operations.collective])
    found = np.where(rank.operations.kind == OperationKind.COMMUNICATION, communication, MEMORY)
    return np.where(computing, compute, found)


def factor_of(factors: Factors, name: str, names: Collection[str]) -> float:
    """The target over the traced run, for one of the classes of a trace."""
    if name in (PRODUCTS, MEMORY, COMPUTE, HOST):
        return float(getattr(factors, name))
    kind, *axes = name.split(" ")
    return factors.of_axes(cast(Sequence[Axis], axes)) if axes else factors.collective(kind, names)
