"""What modules, layers and microbatches of a model take in a step, where a recording says which launched what."""

from collections import Counter, defaultdict
from collections.abc import Callable, Mapping

from asap.traces.analysis.report import ModelPart
from asap.traces.graph.graph import Graph
from asap.traces.readers.operators import HostWork, Launched, kind_of
from asap.traces.trace import NS, Integers

NO_MODULE = "no module"
NO_MODULES = "which module launched what is not recorded: torch.profiler.profile(with_stack=True) does"


def module_times(
    graph: Graph, times: Integers, hosts: Mapping[int, HostWork],
    part: Callable[[Launched], str | None] = lambda by: by.module,
) -> dict[str, float]:  # fmt: skip
    """Seconds that operations of each module, or other ``part``, run in a step, from ``graph.measured`` or
    ``graph.replayed``; a mean over the ranks whose host was read. Empty where no module is recorded."""
    found: defaultdict[str, float] = defaultdict(float)
    read = [each for each in zip(graph.trace.ranks, graph.nodes, strict=True) if each[0].rank in hosts]
    for rank, nodes in read:
        ran = NS * (times[nodes.operation_end] - times[nodes.operation_start]) / max(len(rank.steps), 1) / len(read)
        for number, seconds in zip(rank.operations.correlation.tolist(), ran.tolist(), strict=True):
            by = hosts[rank.rank].launched.get(number)
            found[(by and part(by)) or NO_MODULE] += seconds
    return dict(sorted(found.items(), key=lambda each: -each[1])) if {*found} - {NO_MODULE} else {}


def model_parts(graph: Graph, hosts: Mapping[int, HostWork]) -> list[ModelPart]:
    """Microbatches of a step where there are several, layers, and modules, the longest first."""
    modules, layers = module_times(graph, graph.measured, hosts), defaultdict[str, list[float]](list)
    for name, seconds in module_times(graph, graph.measured, hosts, lambda by: by.layer).items():
        layers[kind_of(name)].append(seconds)
    layer = max({*layers} - {NO_MODULE}, key=lambda each: sum(layers[each]), default="")
    found: list[tuple[str, str, int, float, float | None]] = []
    if len(layers[layer]) > 1:
        called = [count for host in hosts.values() for name, count in host.modules.items() if kind_of(name) == layer]
        count = round(max(called) / graph.trace.recorded_steps)
        whole = sum(sum(seconds) for name, seconds in layers.items() if name != NO_MODULE)
        found += [("microbatch", layer, count, whole, None)] if count > 1 else []
        found += [("layer", layer, len(layers[layer]), sum(layers[layer]), max(layers[layer]))]
    instances = Counter(map(kind_of, {name for host in hosts.values() for name in host.modules}))
    found += [("module", name, instances[name], seconds, None) for name, seconds in modules.items()]
    fields = "part", "name", "count", "time_s", "longest_s"
    return [ModelPart.model_validate(dict(zip(fields, each, strict=True))) for each in found]
