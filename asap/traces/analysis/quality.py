"""How far a graph can be believed: the start delay that nothing in it explains."""

import numpy as np

from asap.core.errors import InsufficientEvidenceError
from asap.core.units import format_percent
from asap.traces.analysis.breakdown import exposed_time, rank_times
from asap.traces.analysis.report import QualityVerdict
from asap.traces.collectives import unmatched
from asap.traces.graph.build import delays
from asap.traces.graph.graph import Graph
from asap.traces.trace import NS

GOOD = 0.10
"""Unexplained share of the device's time below which replays of real traces of V100, A100, H100 and MI300X were within
2 % of the measured iteration."""

UNSEEN_DOUBT = 0.25
"""Of what a stage waits for others that are not at hand, how much may change otherwise than its own work."""

REFUSED = 0.50
"""Above it the graph explains less than it leaves open."""


def unexplained(graph: Graph) -> list[float]:
    """For each rank: delays of operations that no edge explains, as a share of the device's time."""
    late = delays(graph.measured, graph.edges)
    return [
        float(late[nodes.operation_start].sum()) / max(rank.device_span, 1)
        for rank, nodes in zip(graph.trace.ranks, graph.nodes, strict=True)
    ]


def unmatched_share(graph: Graph) -> float:
    """Exposed time of collectives of which no other rank's part was found, as a share of the device's; worst rank.

    How much of it is waiting is not known: nothing says for whom. Of transfers between stages the shortest tells it.
    """
    masks = unmatched(graph.trace.ranks, graph.trace.matched)
    shares, columns = [0.0], (graph.trace.ranks, graph.nodes, rank_times(graph, graph.measured))
    for rank, nodes, times, mask in zip(*columns, masks, strict=True):
        if mask.any():
            known = np.where(nodes.operation_met > nodes.operation_start, UNSEEN_DOUBT, 1.0)
            shares.append(float((known * exposed_time(rank, times))[mask].sum()) / (NS * max(rank.device_span, 1)))
    return min(max(shares), 1.0)


def verdict(graph: Graph) -> QualityVerdict:
    """The verdict on the worst rank. Where several ranks are at hand, collectives that match none of them count too."""
    worst = max(unexplained(graph))
    if worst > REFUSED:
        return QualityVerdict.REFUSED
    several = len(graph.trace.ranks) > 1 and not any(rank.groups_unknown for rank in graph.trace.ranks)
    open_share = max(worst, unmatched_share(graph) if several else 0.0)
    return QualityVerdict.GOOD if open_share <= GOOD else QualityVerdict.DOUBTFUL


def doubts(graph: Graph) -> tuple[str, ...]:
    """What a reader of a graph that is not good should know."""
    if verdict(graph) is QualityVerdict.GOOD:
        return ()
    worst, alone = max(unexplained(graph)), unmatched_share(graph)
    found = (f"The graph of the trace leaves {format_percent(worst)} of the device's time unexplained.",)
    unmet = (f"Collectives that match none of another rank take {format_percent(alone)} of the device's time.",)
    return found if worst > GOOD else unmet


def require_explained(graph: Graph) -> None:
    """Raises InsufficientEvidenceError: most of the time of a rank is not explained, so no change can be predicted."""
    worst = max(unexplained(graph))
    if worst > REFUSED:
        raise InsufficientEvidenceError(
            f"the graph leaves {format_percent(worst)} of the device's time unexplained",
            hint="record the launches too, and cuda_sync events, so that what waits for what can be seen",
        )
