"""How far a graph can be believed: the start delay that nothing in it explains."""

from enum import StrEnum

from asap.core.errors import InsufficientEvidenceError
from asap.core.units import format_percent
from asap.traces.graph.build import delays
from asap.traces.graph.graph import Graph

GOOD = 0.10
"""Unexplained share of the device's time below which replays of real traces of V100, A100, H100 and MI300X were within
2 % of the measured iteration."""

REFUSED = 0.50
"""Above it the graph explains less than it leaves open."""


class QualityVerdict(StrEnum):
    """What the unexplained share means."""

    GOOD = "good"
    DOUBTFUL = "doubtful"
    REFUSED = "refused"


def unexplained(graph: Graph) -> list[float]:
    """For each rank: delays of operations that no edge explains, as a share of the device's time."""
    late = delays(graph.measured, graph.edges)
    return [
        float(late[nodes.operation_start].sum()) / max(rank.device_span, 1)
        for rank, nodes in zip(graph.trace.ranks, graph.nodes, strict=True)
    ]


def verdict(share: float) -> QualityVerdict:
    """The verdict on the worst rank."""
    return (
        QualityVerdict.GOOD
        if share <= GOOD
        else QualityVerdict.DOUBTFUL
        if share <= REFUSED
        else QualityVerdict.REFUSED
    )


def doubts(graph: Graph) -> tuple[str, ...]:
    """What a reader of a graph that is not good should know."""
    worst = max(unexplained(graph))
    if verdict(worst) is QualityVerdict.GOOD:
        return ()
    return (f"The graph of the trace leaves {format_percent(worst)} of the device's time unexplained.",)


def require_explained(graph: Graph) -> None:
    """Raises InsufficientEvidenceError: most of the time of a rank is not explained, so no change can be predicted."""
    worst = max(unexplained(graph))
    if verdict(worst) is QualityVerdict.REFUSED:
        raise InsufficientEvidenceError(
            f"the graph leaves {format_percent(worst)} of the device's time unexplained",
            hint="record the launches too, and cuda_sync events, so that what waits for what can be seen",
        )
