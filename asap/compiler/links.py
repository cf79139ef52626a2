"""How long a transfer takes on the torus: bytes over the busiest link.

The compiler gives collectives no time. A group that fills a box of the torus uses both directions of every axis of the
box that wraps, one where it does not ("How to Scale Your Model", chapter "Sharded Matrices"). Any other group is laid
as a ring in the order of its members, routed along one axis after the other, and the busiest link decides; so are
all-to-alls and permutes. The model is an assumption until it is calibrated.
"""

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from asap.compiler.groups import Groups
from asap.hardware import Slice

Place = tuple[int, ...]
Pairs = tuple[tuple[int, int], ...]
Link = tuple[Place, int, int]
Lane = tuple[int, int]
"""One direction of a torus axis; the network between slices is ``NETWORK``."""
NETWORK: Lane = (-1, 0)


@dataclass(frozen=True)
class Fabric:
    """The torus of a job. ``places`` are chip coordinates of the devices in mesh order, ``slices`` their slices.

    Off the torus places are empty and no transfer has a time.
    """

    hardware: Slice
    places: tuple[Place, ...]
    slices: tuple[int, ...]
    _known: dict[tuple[str, Groups], float] = field(default_factory=dict, compare=False, repr=False)
    _routed: dict[Pairs, tuple[Counter[Link], Counter[Lane]]] = field(default_factory=dict, compare=False, repr=False)

    def lanes(self, members: Iterable[int]) -> dict[Lane, float]:
        """Both directions of the torus axes along which the members differ, each held all the time."""
        chosen = list(members)
        columns = zip(*(self.places[m] for m in chosen), strict=True)
        held = [(axis, step) for axis, column in enumerate(columns) if len(set(column)) > 1 for step in (1, -1)]
        between = [NETWORK] if len({self.slices[m] for m in chosen}) > 1 else []
        return dict.fromkeys([*held, *between], 1.0)

    def permute_lanes(self, pairs: Pairs) -> dict[Lane, float]:
        """Lanes that a permute goes along, and the share of its time for which it holds each."""
        if any(self.slices[a] != self.slices[b] for a, b in pairs):
            return {NETWORK: 1.0}
        _, lanes = self._routes(pairs)
        most = max(lanes.values(), default=1)
        return {lane: messages / most for lane, messages in lanes.items()}

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
        """The first device and those in its place in the other slices."""
        return tuple(index for index, place in enumerate(self.places) if place == self.places[0])

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
        """Bytes/s at which each device takes in a gather, with all groups at it at once."""
        key = ("gather", groups)
        if key not in self._known:
            self._known[key] = self._link * (self._box_links(groups) or 2 / max(self._ring_load(groups), 1))
        return self._known[key]

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
        return _busiest(self._route_all([*forward, *((b, a) for a, b in forward)]))

    def _exchange_load(self, groups: Groups) -> float:
        key = ("exchange", groups)
        if key not in self._known:
            boxes = {self._box(group) for group in groups}
            chosen = groups[:1] if len(boxes) == 1 and None not in boxes else groups
            pairs = ((a, b) for group in chosen for a in group for b in group if a != b)
            self._known[key] = _busiest(self._route_all(pairs))
        return self._known[key]

    def _box(self, members: Sequence[int]) -> tuple[int, ...] | None:
        """Lengths of the box that the members fill, if they fill one."""
        places = {self.places[m] for m in members}
        columns = [sorted(set(column)) for column in zip(*places, strict=True)]
        lengths = tuple(len(column) for column in columns)
        dense = all(column[-1] - column[0] + 1 == len(column) for column in columns)
        return lengths if dense and math.prod(lengths) == len(places) else None

    def _routes(self, pairs: Pairs) -> tuple[Counter[Link], Counter[Lane]]:
        """Messages over each link, and along each lane."""
        if pairs not in self._routed:
            links = Counter(self._route_all(pairs))
            lanes: Counter[Lane] = Counter()
            for (_, axis, step), messages in links.items():
                lanes[axis, step] += messages
            self._routed[pairs] = links, lanes
        return self._routed[pairs]

    def _route_all(self, pairs: Iterable[tuple[int, int]]) -> Iterator[Link]:
        for source, target in pairs:
            yield from self._route(self.places[source], self.places[target])

    def _route(self, source: Place, target: Place) -> Iterator[Link]:
        """Links from one chip to another, one axis after the other, the shorter way around."""
        place = list(source)
        for axis, length in enumerate(self.hardware.topology or ()):
            away = (target[axis] - place[axis]) % length
            forward = away <= length - away if self.hardware.wraps[axis] else target[axis] > place[axis]
            step = 1 if forward else -1
            while place[axis] != target[axis]:
                yield (tuple(place), axis, step)
                place[axis] = (place[axis] + step) % length


def _busiest(links: Iterable[Link]) -> int:
    return max(Counter(links).values(), default=0)
