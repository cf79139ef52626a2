"""The chips of a job and how they are wired.

A TPU slice is a torus, and several slices are joined by the data-centre network. GPUs form domains of
``scaleup.domain``, joined by the fabric. Bandwidths follow "How to Scale Your Model", chapter
"Sharded Matrices": a ring sends over both links of an axis at once, a line over one.
"""

import math
from dataclasses import dataclass

from asap.core.errors import ConfigError
from asap.hardware.chip import Chip, Torus
from asap.hardware.shapes import format_topology


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
