"""Rates of one JAX device: a chip's figures divided by its devices, its clock, and what programs reach of the peaks.

Efficiencies are from the published profile of one MaxText run, Qwen3-8B on v6e-8 with three sequences of 8192 a chip
(github.com/vlasenkoalexey/tpu_performance_autoresearch_wiki, 6dbda52d60, experiment
2026-06-02-maxtext-qwen3-8b-v6e8-ref-seq8192: 48.3 % of 3.54 s are matmuls, 7.2 % loop fusions, 1.8 % formatting), over
what the same program, compiled here, would take at the peak: 1.41 s of matmuls, 0.24 s of memory traffic.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from asap.core.errors import BadInputError
from asap.hardware import Chip

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
        BadInputError: the clock of the chip is not known.
    """
    peak = chip.peak_flops["bf16"] / chip.devices
    units = _MATRIX_UNITS.get(chip.name)
    if chip.clock is None and units is None:
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
