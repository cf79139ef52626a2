"""The chips of a job and how they are wired.

A TPU slice is a torus, and several slices are joined by the data-centre network. GPUs form domains of
``scaleup.domain``, joined by the fabric. Bandwidths follow "How to Scale Your Model", chapter
"Sharded Matrices": a ring sends over both links of an axis at once, a line over one.
"""

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass

from asap.core.errors import ConfigError
from asap.core.text import plain
from asap.hardware.chip import Chip, Torus

CUBE = 4
_SHAPE = re.compile(r"\d{1,5}(?:x\d{1,5})*", re.ASCII)


def parse_topology(topology: str | Sequence[int] | None) -> tuple[int, ...] | None:
    """``"8x8x8"`` → ``(8, 8, 8)``; nothing → ``None``.

    Raises:
        ConfigError: it is not positive integers joined by x.
    """
    if not topology:
        return None
    text = (topology if isinstance(topology, str) else format_topology(topology)).strip().casefold()
    lengths = tuple(int(length) for length in text.split("x")) if _SHAPE.fullmatch(text) else (0,)
    if min(lengths) < 1:
        raise ConfigError("is not a topology", where=plain(text, 60), hint="write it like 16x16 or 8x8x8")
    return lengths


def format_topology(topology: Sequence[int]) -> str:
    """``(8, 8, 8)`` → ``"8x8x8"``."""
    return "x".join(map(str, topology))


def default_topology(chip: Chip, chips: int) -> tuple[int, ...] | None:
    """The documented shape of a slice of that many chips, else the most compact one of whole cubes, else ``None``.

    The rule gives the shapes that MaxText lists for each size (accelerator_to_spec_map.py).
    """
    if chip.torus is None or chips > chip.torus.pod:
        return None
    documented = (parse_topology(shape) for shape in chip.torus.shapes)
    same_size = [shape for shape in documented if shape and math.prod(shape) == chips]
    return min(same_size or cube_topologies(chip, chips), key=sum, default=None)


def cube_topologies(chip: Chip, chips: int) -> list[tuple[int, ...]]:
    """Every shape of that many chips that is made of whole cubes of 4x4x4, sides in ascending order."""
    cubes, rest = divmod(chips, CUBE**3)
    if chip.torus is None or not chip.torus.wrap_together or rest:
        return []
    sides = [side for side in range(1, cubes + 1) if cubes % side == 0]
    return [
        (CUBE * a, CUBE * b, CUBE * (cubes // (a * b)))
        for a in sides
        for b in sides
        if a <= b and cubes % (a * b) == 0 and b <= cubes // (a * b)
    ]


@dataclass(frozen=True)
class Slice:
    """Chips of one kind; ``topology`` counts chips along each torus axis of one slice, ``None`` for GPUs.

    Raises:
        ConfigError: the topology does not fit the chip or the number of chips.
    """

    chip: Chip
    chips_per_slice: int
    topology: tuple[int, ...] | None = None
    slices: int = 1

    def __post_init__(self) -> None:
        if min(self.chips_per_slice, self.slices, *(self.topology or (1,))) < 1:
            raise ConfigError("chips, slices and topology axes must be at least 1", where=self.chip.name)
        if self.chip.torus is not None:
            self._check_torus(self.chip.torus)
        elif self.topology is not None:
            raise ConfigError(f"{self.chip.title} has no torus, so it takes no topology", where=self.shape)

    def _check_torus(self, torus: Torus) -> None:
        if self.topology is None or len(self.topology) != torus.axes:
            raise ConfigError(
                f"{self.chip.title} needs a topology of {torus.axes} axes", where=self.shape or "topology"
            )
        if math.prod(self.topology) != self.chips_per_slice:
            raise ConfigError(f"has {math.prod(self.topology)} chips, not {self.chips_per_slice}", where=self.shape)
        if self.chips_per_slice > torus.pod:
            reason = f"a slice of {self.chip.title} has at most {torus.pod} chips"
            raise ConfigError(reason, where=self.shape, hint="give the number of slices")

    @property
    def shape(self) -> str:
        """The topology as text: ``8x8x8``; empty for GPUs."""
        return format_topology(self.topology or ())

    @property
    def chips(self) -> int:
        """Chips of the whole job."""
        return self.chips_per_slice * self.slices

    @property
    def devices(self) -> int:
        """JAX devices of the whole job."""
        return self.chips * self.chip.devices

    @property
    def devices_per_slice(self) -> int:
        """JAX devices of one slice."""
        return self.chips_per_slice * self.chip.devices

    @property
    def wraps(self) -> tuple[bool, ...]:
        """For each torus axis, whether it closes to a ring; empty for GPUs."""
        torus = self.chip.torus
        if torus is None or self.topology is None:
            return ()
        can = tuple(length % torus.wrap_at == 0 for length in self.topology)
        return (all(can),) * len(can) if torus.wrap_together else can

    @property
    def domain(self) -> int:
        """Chips that reach each other without the network: a TPU slice, or a GPU's scale-up domain."""
        return self.chips_per_slice if self.chip.scaleup is None else min(self.chip.scaleup.domain, self.chips)

    @property
    def domains(self) -> int:
        """Slices of TPUs, or scale-up domains of GPUs."""
        return math.ceil(self.chips / self.domain)

    def axis_bandwidth(self, axis: int) -> float:
        """Bytes/s that one chip sends along a torus axis: both links of a ring, one of a line."""
        if self.chip.torus is None:
            raise ConfigError(f"{self.chip.title} has no torus", where="axis_bandwidth")
        return self.chip.torus.link_bandwidth * (2 if self.wraps[axis] else 1)
