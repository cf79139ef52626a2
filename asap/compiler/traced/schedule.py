"""When traced operations end: each as early as what it needs, the device and the links of the torus allow.

List scheduling (Graham 1969): one computation at a time, beside transfers that share no direction of the torus. As in
compiled products, gathers run one at a time, and what reduces or exchanges takes the device as well: of the collectives
the compiler starts only permutes and all-gathers early (:mod:`asap.compiler.programs.flags`).
"""

import heapq
from collections.abc import Sequence

from asap.compiler.schedule.device_rates import DeviceRates
from asap.compiler.schedule.interconnect import Interconnect, TorusDirection
from asap.compiler.traced.operations import Operation, Send

_Resource = TorusDirection | str
_DEVICE, _GROUPS = "device", "groups"


def seconds_of(operations: Sequence[Operation], links: Interconnect, rates: DeviceRates) -> float:
    """Time until all have ended.

    Args:
        operations: of one device; none comes after a later one.
        links: with the coordinates of the places of the grid.
        rates: of the device.
    """
    ends: dict[int, float] = {}
    free: dict[_Resource, float] = {}
    waits = [len(each.after) for each in operations]
    later: list[list[int]] = [[] for _ in operations]
    for index, operation in enumerate(operations):
        for before in operation.after:
            later[before].append(index)
    ready = [(0.0, index) for index, count in enumerate(waits) if not count]
    while ready:
        _, index = heapq.heappop(ready)
        operation = operations[index]
        taken, seconds = _taken(operation, links, rates)
        start = max([0.0, *(ends[each] for each in operation.after), *(free.get(each, 0.0) for each in taken)])
        if ready and (start, index) > ready[0]:
            heapq.heappush(ready, (start, index))
            continue
        ends[index] = start + seconds
        free |= {resource: start + share * seconds for resource, share in taken.items()}
        for each in later[index]:
            waits[each] -= 1
            if not waits[each]:
                heapq.heappush(ready, (ends[index], each))
    return max(ends.values(), default=0.0)


def _taken(operation: Operation, links: Interconnect, rates: DeviceRates) -> tuple[dict[_Resource, float], float]:
    """What an operation occupies, each for which share of its time, and its time."""
    if operation.send is not None:
        return _sent(operation.send, links)
    if operation.body:
        return {_DEVICE: 1.0}, operation.times * seconds_of(operation.body, links, rates)
    seconds = max(rates.matmul_seconds(operation.flops), rates.memory_seconds(operation.size))
    return ({_DEVICE: 1.0} if seconds else {}), seconds


def _sent(send: Send, links: Interconnect) -> tuple[dict[_Resource, float], float]:
    if send.kind == "collective-permute":
        return {**links.permute_directions(send.pairs)}, links.permute_seconds(send.size, send.pairs)
    alone = () if send.kind == "all-gather" else (_DEVICE,)
    taken: dict[_Resource, float] = dict.fromkeys((*links.directions(send.groups[0]), _GROUPS, *alone), 1.0)
    return taken, links.seconds(send.kind, send.size, send.groups)
