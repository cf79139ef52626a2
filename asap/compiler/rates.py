"""What one JAX device can do: a chip's figures divided by its devices, and the clock that the compiler counts in."""

from collections.abc import Mapping
from dataclasses import dataclass

from asap.core.errors import BadInputError
from asap.hardware import Chip

_MATRIX_UNITS: Mapping[str, int] = {"v5e": 4, "v5p": 8, "v6e": 4, "tpu7x": 4}
"""Matrix units of a device as the compiler counts them, so that peak FLOP/s give the clock. Confirmed by compiling a
product of 8192-wide matrices: 115, 236, 369 and 422 thousand FLOPs a cycle, below 2 × units × tile² for each."""


@dataclass(frozen=True)
class Rates:
    """Figures of one device: Hz, TensorCores, FLOP/s, bytes/s, bytes."""

    clock: float
    cores: float
    peak_flops: float
    hbm_bandwidth: float
    hbm_bytes: float
    host_bandwidth: float | None
    matmul_tile: int


def rates(chip: Chip) -> Rates:
    """Figures of one device of a chip.

    Raises:
        BadInputError: the clock of the chip is not known.
    """
    peak = chip.peak_flops["bf16"] / chip.devices
    units = _MATRIX_UNITS.get(chip.name)
    if chip.clock is None and units is None:
        raise BadInputError("the clock is not known, so cycles cannot be read", where=chip.title)
    return Rates(
        clock=chip.clock or peak / (2 * (units or 1) * chip.matmul_tile**2),
        cores=chip.cores / chip.devices,
        peak_flops=peak,
        hbm_bandwidth=chip.hbm_bandwidth / chip.devices,
        hbm_bytes=chip.hbm_bytes / chip.devices,
        host_bandwidth=chip.host_bandwidth,
        matmul_tile=chip.matmul_tile,
    )
