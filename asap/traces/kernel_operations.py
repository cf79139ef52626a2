"""The kernels of a traced run as operations of a profile: exposed time, and cost where shapes were recorded.

Kernels of one name are one operation for each operator that launches them. An operator's cost goes to its kernels by
their time; its efficiency is the least time that the chip needs over the time that they ran, hidden or not.
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple, cast

from asap.hardware import Chip
from asap.profiles import Operation
from asap.profiles.collectives import bound_of_kernel, compute_class, is_host_copy_event
from asap.profiles.operations import longest_first
from asap.profiles.operators import Cost, OperatorCall, Roof, cost_of, is_misaligned, peak_of
from asap.profiles.profile import CollectiveKind, Total, Trait
from asap.traces.analysis.breakdown import RankTimes, exposed_time
from asap.traces.readers.operators import HostWork, Launched
from asap.traces.trace import ANY_COLLECTIVE, NS, RankTrace, collective_kind

HOST_COPY = "host copy"
_SMALL = 1 << 20
_NOT_RECORDED = Launched(None, -1, None, False)


class _Key(NamedTuple):
    name: str
    operator: str | None
    precision: str | None
    traits: tuple[Trait, ...]
    collective: str | None


@dataclass
class _Sum:
    """Of all kernels of a key: shares of the window, and seconds of a rank."""

    fraction: float = 0.0
    count: float = 0.0
    busy_s: float = 0.0
    known_s: float = 0.0
    least_s: float = 0.0
    compute_s: float = 0.0
    flops: float = 0.0
    bytes: float = 0.0
    collective_bytes: float = 0.0
    kind: str | None = None
    shapes: str | None = None


class Kernels(NamedTuple):
    """Operations, and what modules take."""

    operations: tuple[Operation, ...]
    modules: tuple[Total, ...]


def kernel_operations(
    ranks: Sequence[tuple[RankTrace, RankTimes]], hosts: Mapping[int, HostWork], chip: Chip | None, step_s: float | None
) -> Kernels:
    """The operations of all ranks, means over them.

    Args:
        ranks: each with its times.
        hosts: what the host did, by rank, where it was read.
        chip: that ran them; without it there is no efficiency.
        step_s: seconds of a step, where steps are marked.
    """
    sums: dict[_Key, _Sum] = defaultdict(_Sum)
    modules: dict[str, float] = defaultdict(float)
    for rank, times in ranks:
        _add(sums, modules, rank, times, hosts.get(rank.rank), chip, len(ranks))
    runs = sum(max(len(rank.steps), 1) for rank, _ in ranks)
    window = sum(NS * (times.window[1] - times.window[0]) for _, times in ranks) / len(ranks)
    operations = longest_first(_operation(key, found, step_s or window, runs, chip) for key, found in sums.items())
    named = sorted(modules.items(), key=lambda each: -each[1])
    return Kernels(operations, tuple(Total(name=name, fraction=share) for name, share in named))


def _add(
    sums: dict[_Key, _Sum], modules: dict[str, float], rank: RankTrace, times: RankTimes, host: HostWork | None,
    chip: Chip | None, ranks: int,
) -> None:  # fmt: skip
    window = NS * max(times.window[1] - times.window[0], 1)
    exposed, busy = exposed_time(rank, times), NS * (times.end - times.start)
    by_number = host.launched if host else {}
    launched = [by_number.get(number, _NOT_RECORDED) for number in rank.operations.correlation.tolist()]
    together: dict[int, float] = defaultdict(float)
    for each, seconds in zip(launched, busy.tolist(), strict=True):
        together[each.instance] += seconds
    rows = zip(rank.operations.name.tolist(), rank.operations.collective.tolist(), launched, exposed.tolist(),
               busy.tolist(), strict=True)  # fmt: skip
    for name, collective, by, seconds, ran in rows:
        title = str(rank.names[name])
        kind = collective_kind(title)
        call, kind = (None, _collective(kind, by)) if kind else (by.call, None)
        size = rank.collectives[collective].size_bytes if collective >= 0 else 0
        operator, precision = (call.name, call.precision) if call else (None, None)
        key = _Key(title, operator, precision, _traits(call, by, size), kind)
        found = sums[key]
        found.fraction += seconds / window / ranks
        found.count += 1
        found.busy_s += ran
        if by.module:
            modules[by.module] += seconds / window / ranks
        found.collective_bytes += size
        if call and (cost := cost_of(call)):
            _add_cost(found, call, cost, ran / (together[by.instance] or 1.0), ran, chip, title)


def _collective(kind: str, by: Launched) -> str:
    """NCCL runs all-to-all, and older ones all that has no kernel of its own, as send and receive: annotations say."""
    return by.collective or kind if kind == "send-recv" else kind


def _traits(call: OperatorCall | None, by: Launched, size: int) -> tuple[Trait, ...]:
    found: tuple[tuple[Trait, bool], ...] = (
        ("recomputed", by.recomputed), ("casting", bool(call and call.is_casting)),
        ("misaligned", bool(call and is_misaligned(call))), ("small", 0 < size < _SMALL),
    )  # fmt: skip
    return tuple(trait for trait, holds in found if holds)


def _add_cost(
    found: _Sum, call: OperatorCall, cost: Cost, part: float, ran: float, chip: Chip | None, kernel: str
) -> None:
    found.flops += part * cost.flops
    found.bytes += part * cost.bytes
    found.kind, found.shapes = cost.kind, found.shapes or _shapes(call)
    if roof := Roof.of(cost, chip, call.precision, kernel) if chip else None:
        found.known_s += ran
        found.least_s += part * roof.seconds
        found.compute_s += part * roof.seconds if roof.bound == "compute" else 0.0


def _shapes(call: OperatorCall) -> str:
    listed = (",".join(map(str, shape)) for shape in call.shapes if shape)
    return f"{call.name.partition('::')[2]}({' '.join(f'[{shape}]' for shape in listed)})"


def _operation(key: _Key, found: _Sum, whole_s: float, runs: int, chip: Chip | None) -> Operation:
    kind = key.collective
    is_copy = is_host_copy_event(key.name)
    measured = found.kind is not None and not kind and not is_copy
    busy_s = found.busy_s if measured else 0.0
    flop_rate, bandwidth = (found.flops / busy_s, found.bytes / busy_s) if busy_s else (None, None)
    peak = peak_of(chip, key.precision, key.name) if chip else None
    by_name = "host" if is_copy else "unknown" if kind else bound_of_kernel(key.name)
    computes = found.compute_s > found.least_s / 2
    category = kind or (HOST_COPY if is_copy else found.kind or compute_class(key.name))
    return Operation(
        name=key.name, category=category, operator=key.operator, precision=key.precision, traits=key.traits,
        fraction=found.fraction, time_s=found.fraction * whole_s, occurrences=found.count / runs,
        bound=("compute" if computes else "hbm") if found.least_s and measured else by_name,
        bound_by_name=not (found.least_s and measured), flops=found.flops / runs if measured else None,
        flop_rate=flop_rate, flop_utilisation=flop_rate / peak if flop_rate is not None and peak else None,
        bytes_accessed=found.bytes / runs if measured else found.collective_bytes / runs or None,
        memory_bandwidth=bandwidth,
        memory_utilisation=bandwidth / chip.hbm_bandwidth if bandwidth is not None and chip else None,
        roofline_efficiency=found.least_s / found.known_s if measured and found.known_s else None, shape=found.shapes,
        collective=cast(CollectiveKind, kind) if kind and kind != ANY_COLLECTIVE else None,
        collective_wait=kind == ANY_COLLECTIVE, host_copy=is_copy,
    )  # fmt: skip
