"""The step time of another run from the trace of this one.

Each kernel of the trace takes its time times the factor of its class, and the graph is replayed: overlap, waits and
idle time follow. Time of collectives that no kernel of the trace stands for, and the bubble of a pipeline, come from
the step model, scaled by how the traced kernels of their class compare with it.
"""

from collections import defaultdict
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from asap.plans import Plan
from asap.prediction.from_trace.factors import Factors, factors
from asap.prediction.from_trace.run import Run, changed_run, is_setting
from asap.study.study import Study
from asap.traces.graph.graph import Graph
from asap.traces.operations import ANY_COLLECTIVE, collective_kind, compute_class
from asap.traces.trace import NS, OperationKind, RankTrace
from asap.traces.what_if.apply import apply, scaled_host, scaled_operations
from asap.traces.what_if.change import Change, parse_change
from asap.traces.what_if.predict import WhatIfPrediction, predict_change, predict_changed

PRODUCTS, MEMORY, COMPUTE = "products", "memory", "compute"
_PRODUCTS = ("matmul", "attention", "convolution")


def predict_run(graph: Graph, traced: Run, target: Run, changes: Sequence[Change] = ()) -> WhatIfPrediction:
    """What a step of another run takes.

    Args:
        graph: of the traced run.
        traced: what was traced.
        target: what is asked about.
        changes: of the graph, made first.

    Raises:
        InsufficientEvidenceError: the trace does not explain enough, or the model is not known.
    """
    found = factors(traced, target)
    classes = [_classes(rank) for rank in graph.trace.ranks]
    changed = scaled_host(apply(graph, changes), found.host)
    share = transfer_share(graph)
    for name in sorted({each for labels in classes for each in labels.tolist()}):
        masks = [labels == name for labels in classes]
        changed = scaled_operations(changed, masks, _factor(found, name, share))
    predicted = predict_changed(graph, changed, _added(graph, found, share), found.doubt)
    return predicted._replace(of_another_run=True)


def what_if(
    graph: Graph, changes: Sequence[str], study: Study | None = None, plan: Plan | None = None
) -> WhatIfPrediction:
    """What a step takes after changes in their text form.

    Args:
        graph: of the traced run.
        changes: of the graph, and settings of the run.
        study: of the traced run; without it only the graph can be changed.
        plan: that was traced, if it is not the study's.

    Raises:
        UsageError: a change is none.
        InsufficientEvidenceError: the trace or the study does not hold what a change concerns.
    """
    settings = [change for change in changes if study is not None and is_setting(change)]
    parsed = [parse_change(change) for change in changes if change not in settings]
    if study is None or not settings:
        return predict_change(graph, parsed)
    traced = Run.of(study, plan)
    return predict_run(graph, traced, changed_run(traced, settings), parsed)


def transfer_share(graph: Graph) -> float:
    """Of the time of collectives, what moves data; the rest waits for other ranks, and follows what they compute.

    Matched collectives hold their transfer alone. Of others, what takes the shortest of all ranks is the transfer. From
    one rank alone it cannot be told, and all of it counts as transfer.
    """
    ranks = graph.trace.ranks
    if graph.matched or len(ranks) < 2:
        return 1.0
    times: dict[str, list[NDArray[np.int64]]] = defaultdict(list)
    for rank in ranks:
        events = rank.operations
        for number in np.unique(events.name[events.kind == OperationKind.COMMUNICATION]).tolist():
            mine = events.name == number
            times[str(rank.names[number])].append((events.end - events.start)[mine])
    alike = [found for found in times.values() if len({len(each) for each in found}) == 1 and len(found) == len(ranks)]
    whole = sum(float(np.mean(found, axis=0).sum()) for found in alike)
    return sum(float(np.min(found, axis=0).sum()) for found in alike) / whole if whole else 1.0


def _classes(rank: RankTrace) -> NDArray[np.str_]:
    """The class of each operation. Where no name says what a product is, all computation is one class."""
    kinds = [compute_class(name) for name in rank.names]
    computing = rank.operations.kind == OperationKind.COMPUTE
    named = any(kinds[number] in _PRODUCTS for number in np.unique(rank.operations.name[computing]).tolist())
    labels = []
    for name, kind in zip(rank.operations.name.tolist(), rank.operations.kind.tolist(), strict=True):
        if kind == OperationKind.COMMUNICATION:
            labels.append(collective_kind(rank.names[name]) or ANY_COLLECTIVE)
        elif kind != OperationKind.COMPUTE:
            labels.append(MEMORY)
        else:
            labels.append((PRODUCTS if kinds[name] in _PRODUCTS else MEMORY) if named else COMPUTE)
    return np.array(labels, dtype=str)


def _factor(found: Factors, name: str, share: float) -> float:
    if name in (PRODUCTS, MEMORY, COMPUTE):
        return float(getattr(found, name))
    return share * found.collective(name) + (1 - share) * found.compute


def _added(graph: Graph, found: Factors, share: float) -> float:
    """Seconds of new collectives, and what the bubble grows or shrinks by."""
    known = sum(time for axis, time in found.before.axes.items())
    measured = _per_step(graph, communication=True) * share
    calibrated = measured / known if known and measured else 1.0
    working = _per_step(graph, communication=False)
    modelled = found.before.products + found.before.memory
    bubble = (found.after.bubble - found.before.bubble) * (working / modelled if modelled else 1.0)
    return found.new_axes_s * calibrated + bubble


def _per_step(graph: Graph, communication: bool) -> float:
    """Seconds that the operations of a rank take in a step, mean over ranks."""
    totals = []
    for rank in graph.trace.ranks:
        mine = (rank.operations.kind == OperationKind.COMMUNICATION) == communication
        steps = max(len(rank.steps), 1)
        totals.append(NS * float((rank.operations.end - rank.operations.start)[mine].sum()) / steps)
    return float(np.mean(totals))
