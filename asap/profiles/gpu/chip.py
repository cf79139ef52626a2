"""The GPU of a profile: its model, and the roofs that its driver's figures give.

Of AMD's HBM3 GPUs they give half the bandwidth: XLA doubles the memory clock that ROCm reports, and HBM3 moves four
bits a clock (MI300X: 1.3 GHz on 8192 bits is 5.3 TB/s, as its data sheet says, not 2.7). Where the peak in FLOP/s is
that of a data sheet and the bandwidth half of it, the data sheet counts.
"""

from collections.abc import Mapping
from typing import TYPE_CHECKING

from asap.core.units import GIB, format_rate
from asap.profiles.xplane.planes import Value, stat
from asap.profiles.xprof.tables import Peaks

if TYPE_CHECKING:
    from asap.hardware import Chip

GIGA, KILO = 1e9, 1e3
_MODELS: dict[str, dict[int, tuple[str, int]]] = {
    "Nvidia": {
        60: ("(Pascal)", 256), 70: ("(Volta)", 1024), 75: ("(Turing)", 1024), 80: ("(Ampere)", 2048),
        86: ("(Ampere)", 1024), 89: ("(Ada Lovelace)", 1024), 90: ("(Hopper)", 4096), 100: ("(Blackwell)", 8192),
    },
    "AMD": {94: ("- gfx942", 2048), 95: ("- gfx950", 4096)},
}  # fmt: skip
"""By compute capability: name, and FLOPs in fp16 of a multiprocessor in a cycle (cuda_type_utils.cc and
rocm_type_utils.cc of XProf)."""

_AGREES = 0.1
"""Peaks that differ by less are one figure: clocks and units are rounded (V100: 898 of 900 GB/s)."""


def model_of(stats: Mapping[str, Value]) -> str:
    """As XProf names it: ``Nvidia GPU (Hopper)``."""
    return f"{_vendor(stats)} GPU {_generation(stats)[0]}".strip()


def peaks_of(stats: Mapping[str, Value]) -> tuple[Peaks, tuple[str, ...]]:
    """The roofs of one device, and a sentence where its data sheet says better; zero is unknown."""
    flop_rate = KILO * stat(stats, "clock_rate", 0.0) * stat(stats, "core_count", 0.0) * _generation(stats)[1]
    stated = stat(stats, "memory_bandwidth", 0.0)
    chip = _halved(model_of(stats), flop_rate, stated) if _vendor(stats) == "AMD" and flop_rate and stated else None
    bandwidth = chip.hbm_bandwidth if chip else stated
    ridge_point = flop_rate / bandwidth if bandwidth else 0.0
    peaks = Peaks(peak_flop_rate=flop_rate / GIGA, peak_hbm_bw=bandwidth / GIB, hbm_ridge_point=ridge_point)
    if chip is None:
        return peaks, ()
    sentence = (
        f"The profile states a peak HBM bandwidth of {format_rate(stated, 'B/s')} for {chip.title}; its data sheet says"
        f" {format_rate(bandwidth, 'B/s')}, which is used ({chip.source('hbm_bandwidth')})."
    )
    return peaks, (sentence,)


def _halved(model: str, flop_rate: float, bandwidth: float) -> "Chip | None":
    """The whole chip of this model and peak that moves twice as much."""
    from asap.hardware import find_chip, known_chips, load_chip

    named = find_chip(model)
    chips = [chip for chip in map(load_chip, known_chips()) if named and chip.is_called_like(named.chip)]
    if any(_agree(bandwidth, chip.hbm_bandwidth) for chip in chips):
        return None
    halved = [
        chip
        for chip in chips
        if _agree(2 * bandwidth, chip.hbm_bandwidth) and any(_agree(flop_rate, p) for p in chip.peak_flops.values())
    ]
    return min(halved, key=lambda chip: abs(2 * bandwidth - chip.hbm_bandwidth), default=None)


def _agree(one: float, other: float) -> bool:
    return abs(one / other - 1) < _AGREES


def _vendor(stats: Mapping[str, Value]) -> str:
    return str(stats.get("device_vendor", "Nvidia"))


def _generation(stats: Mapping[str, Value]) -> tuple[str, int]:
    """Of the newest known compute capability that a device has."""
    capability = 10 * stat(stats, "compute_cap_major", 0.0) + stat(stats, "compute_cap_minor", 0.0)
    models = _MODELS.get(_vendor(stats), {})
    return models.get(max((known for known in models if known <= capability), default=0), ("", 0))
