"""What the modules of a model take in a step, where a recording says which launched what: PyTorch's ``with_stack``."""

from collections import defaultdict
from collections.abc import Mapping

from asap.traces.graph.graph import Graph
from asap.traces.readers.operators import HostWork
from asap.traces.trace import NS, Integers

NO_MODULE = "no module"
NO_MODULES = "which module launched what is not recorded: torch.profiler.profile(with_stack=True) does"


def module_times(graph: Graph, times: Integers, hosts: Mapping[int, HostWork]) -> dict[str, float]:
    """Seconds that operations of each module run in a step, from ``graph.measured`` or ``graph.replayed``; a mean over
    the ranks whose host was read. Empty where no module is recorded."""
    found: defaultdict[str, float] = defaultdict(float)
    read = [each for each in zip(graph.trace.ranks, graph.nodes, strict=True) if each[0].rank in hosts]
    for rank, nodes in read:
        ran = NS * (times[nodes.operation_end] - times[nodes.operation_start]) / max(len(rank.steps), 1) / len(read)
        for number, seconds in zip(rank.operations.correlation.tolist(), ran.tolist(), strict=True):
            by = hosts[rank.rank].launched.get(number)
            found[(by and by.module) or NO_MODULE] += seconds
    return dict(sorted(found.items(), key=lambda each: -each[1])) if {*found} - {NO_MODULE} else {}
