"""Time of transfers on the torus: routes, and bytes over the bandwidth of the busiest link."""

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from asap.core.errors import BadInputError
from asap.hardware import Chip, Slice
from asap.plans.replica_groups import Groups

Coordinates = tuple[int, ...]
Pairs = tuple[tuple[int, int], ...]
Link = tuple[Coordinates, int, int]
"""The chip that it leaves, the torus axis, and the direction: 1 or -1."""
TorusDirection = tuple[int, int]
"""A torus axis and the direction along it, 1 or -1; the network between slices is :data:`NETWORK`."""
NETWORK: TorusDirection = (-1, 0)


def route(hardware: Slice, source: Coordinates, target: Coordinates) -> Iterator[Link]:
    """Links from one chip to another: one axis after the other, the shorter way around (dimension-order routing)."""
    position = list(source)
    for axis, length in enumerate(hardware.topology or ()):
        distance = (target[axis] - position[axis]) % length
        forward = distance <= length - distance if hardware.wraps[axis] else target[axis] > position[axis]
        step = 1 if forward else -1
        while position[axis] != target[axis]:
            yield (tuple(position), axis, step)
            position[axis] = (position[axis] + step) % length


def busiest_load(links: Iterable[Link]) -> int:
    """Messages over the busiest link."""
    return max(Counter(links).values(), default=0)


@dataclass(frozen=True)
class Interconnect:
    """The tori of a job. ``coordinates`` are those of the devices' chips in mesh order, ``slices`` their slices.

    Without a torus (GPUs) coordinates are empty and no transfer takes time.
    """

    hardware: Slice
    coordinates: tuple[Coordinates, ...]
    slices: tuple[int, ...]
    _load_cache: dict[tuple[str, Groups], float] = field(default_factory=dict, compare=False, repr=False)
    _route_cache: dict[Pairs, tuple[Counter[Link], Counter[TorusDirection]]] = field(
        default_factory=dict, compare=False, repr=False
    )

    def directions(self, members: Iterable[int]) -> dict[TorusDirection, float]:
        """Torus directions that a group occupies: both of each axis along which its members differ, all the time."""
        chosen = list(members)
        columns = zip(*(self.coordinates[m] for m in chosen), strict=True)
        held = [(axis, step) for axis, column in enumerate(columns) if len(set(column)) > 1 for step in (1, -1)]
        between = [NETWORK] if len({self.slices[m] for m in chosen}) > 1 else []
        return dict.fromkeys([*held, *between], 1.0)

    def permute_directions(self, pairs: Pairs) -> dict[TorusDirection, float]:
        """Torus directions that a permute occupies, and for what share of its time."""
        if any(self.slices[a] != self.slices[b] for a, b in pairs):
            return {NETWORK: 1.0}
        _, directions = self._routes(pairs)
        most = max(directions.values(), default=1)
        return {direction: messages / most for direction, messages in directions.items()}

    def seconds(self, kind: str, size: int, groups: Groups) -> float:
        """Time of a collective whose larger side has ``size`` bytes on each device."""
        members = len(groups[0])
        if members < 2 or self.hardware.topology is None:
            return 0.0
        if len({self.slices[m] for m in groups[0]}) > 1:
            return self.network_seconds(kind, size, members)
        passes = 2 if kind == "all-reduce" else 1
        if kind == "all-to-all":
            return size / members * self._exchange_load(groups) / self._link + self._latency(groups)
        return passes * (size * (members - 1) / members / self.gather_bandwidth(groups) + self._latency(groups))

    def permute_seconds(self, size: int, pairs: Pairs) -> float:
        """Time of a permute: the busiest link carries as many messages as are routed over it."""
        if self.hardware.topology is None:
            return 0.0
        if any(self.slices[a] != self.slices[b] for a, b in pairs):
            network = self.hardware.chip.network
            return size / network.bandwidth + network.latency
        links, _ = self._routes(pairs)
        load = max(links.values(), default=0)
        return size * load / self._link + self._hop if load else 0.0

    def counterparts(self) -> tuple[int, ...]:
        """The first device and those at the same coordinates in the other slices."""
        return tuple(index for index, chip in enumerate(self.coordinates) if chip == self.coordinates[0])

    def network_seconds(self, kind: str, size: int, members: int) -> float:
        """Time of a collective between slices, whose larger side has ``size`` bytes on each device."""
        network = self.hardware.chip.network
        passes = 2 if kind == "all-reduce" else 1
        return passes * size * (members - 1) / members / network.bandwidth + network.latency

    @property
    def _link(self) -> float:
        torus = self.hardware.chip.torus
        assert torus is not None
        return torus.link_bandwidth

    @property
    def _hop(self) -> float:
        torus = self.hardware.chip.torus
        assert torus is not None
        return torus.latency

    def _latency(self, groups: Groups) -> float:
        """Hops along each axis of the box, or all around the ring."""
        box = self._box(groups[0])
        return self._hop * (sum(length - 1 for length in box) if box else len(groups[0]) - 1)

    def gather_bandwidth(self, groups: Groups) -> float:
        """Bytes/s at which each device receives in an all-gather that all groups run at once."""
        key = ("gather", groups)
        if key not in self._load_cache:
            self._load_cache[key] = self._link * (self._box_links(groups) or 2 / max(self._ring_load(groups), 1))
        return self._load_cache[key]

    def _box_links(self, groups: Groups) -> int | None:
        """Links that a gather uses at once where every group fills an equal box; else ``None``."""
        box = self._box(groups[0])
        if box is None or any(self._box(group) != box for group in groups):
            return None
        topology, wraps = self.hardware.topology or (), self.hardware.wraps
        joined = zip(box, topology, wraps, strict=True)
        return max(sum(2 if length == whole and wrap else 1 for length, whole, wrap in joined if length > 1), 1)

    def _ring_load(self, groups: Groups) -> int:
        forward = [(a, b) for group in groups for a, b in zip(group, (*group[1:], group[0]), strict=True)]
        return busiest_load(self._route_all([*forward, *((b, a) for a, b in forward)]))

    def _exchange_load(self, groups: Groups) -> float:
        key = ("exchange", groups)
        if key not in self._load_cache:
            boxes = {self._box(group) for group in groups}
            chosen = groups[:1] if len(boxes) == 1 and None not in boxes else groups
            pairs = ((a, b) for group in chosen for a in group for b in group if a != b)
            self._load_cache[key] = busiest_load(self._route_all(pairs))
        return self._load_cache[key]

    def _box(self, members: Sequence[int]) -> tuple[int, ...] | None:
        """Lengths of the box that the members fill, if they fill one."""
        coordinates = {self.coordinates[m] for m in members}
        columns = [sorted(set(column)) for column in zip(*coordinates, strict=True)]
        lengths = tuple(len(column) for column in columns)
        dense = all(column[-1] - column[0] + 1 == len(column) for column in columns)
        return lengths if dense and math.prod(lengths) == len(coordinates) else None

    def _routes(self, pairs: Pairs) -> tuple[Counter[Link], Counter[TorusDirection]]:
        """Messages over each link, and in each direction."""
        if pairs not in self._route_cache:
            links = Counter(self._route_all(pairs))
            directions: Counter[TorusDirection] = Counter()
            for (_, axis, step), messages in links.items():
                directions[axis, step] += messages
            self._route_cache[pairs] = links, directions
        return self._route_cache[pairs]

    def _route_all(self, pairs: Iterable[tuple[int, int]]) -> Iterator[Link]:
        for source, target in pairs:
            yield from route(self.hardware, self.coordinates[source], self.coordinates[target])


_MATRIX_UNITS: Mapping[str, int] = {"v5e": 4, "v5p": 8, "v6e": 4, "tpu7x": 4}
"""Matrix units of a device as the compiler counts them, so that peak FLOP/s give the clock. Confirmed by compiling a
product of 8192-wide matrices: 115, 236, 369 and 422 thousand FLOPs a cycle, below 2 × units × tile² for each."""

_MATMUL_EFFICIENCY = 0.82
"""Share of the peak FLOP/s that matmuls reach."""

_HBM_EFFICIENCY = 0.74
"""Share of the HBM bandwidth that memory-bound operations reach."""

_VMEM_SPEEDUP = 22
"""Bandwidth of VMEM over that of HBM ("How to Scale Your Model", "How to Think About TPUs")."""


@dataclass(frozen=True)
class DeviceRates:
    """Figures of one device: Hz, TensorCores, FLOP/s, bytes/s, bytes."""

    clock: float
    cores: float
    peaks: Mapping[str, float]
    """FLOP/s by precision."""
    hbm_bandwidth: float
    hbm_bytes: float
    host_bandwidth: float | None
    matmul_tile: int

    @property
    def peak_flops(self) -> float:
        """FLOP/s in bf16."""
        return self.peaks["bf16"]

    def matmul_seconds(self, flops: Mapping[str, float]) -> float:
        """Time of matmuls, given FLOPs by precision."""
        return sum(
            count / (_MATMUL_EFFICIENCY * self.peaks.get(precision, self.peak_flops))
            for precision, count in flops.items()
        )

    def memory_seconds(self, size: Mapping[int, float]) -> float:
        """Time to read and write so many bytes of each memory space: 0 is HBM, 1 is VMEM."""
        bandwidth = _HBM_EFFICIENCY * self.hbm_bandwidth
        return max(size.get(0, 0.0) / bandwidth, size.get(1, 0.0) / (_VMEM_SPEEDUP * bandwidth))


def device_rates(chip: Chip) -> DeviceRates:
    """Figures of one device of a chip.

    Raises:
        BadInputError: the clock of a TPU is not known; no time of a GPU is read from cycles.
    """
    peak = chip.peak_flops["bf16"] / chip.devices
    units = _MATRIX_UNITS.get(chip.name)
    if chip.clock is None and units is None and chip.kind == "tpu":
        raise BadInputError("the clock is not known, so cycles cannot be read", where=chip.title)
    return DeviceRates(
        clock=chip.clock or peak / (2 * (units or 1) * chip.matmul_tile**2),
        cores=chip.cores / chip.devices,
        peaks={precision: flops / chip.devices for precision, flops in chip.peak_flops.items()},
        hbm_bandwidth=chip.hbm_bandwidth / chip.devices,
        hbm_bytes=chip.device_capacity,
        host_bandwidth=chip.host_bandwidth,
        matmul_tile=chip.matmul_tile,
    )
