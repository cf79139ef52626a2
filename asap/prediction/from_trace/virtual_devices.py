"""A stand-in for the virtual devices of a CPU, which share its cores: no catalogue has their rates.

Of it the step model needs nothing but how the time of a class of operations changes from one plan to another. Rates
three times as high moved the median error between seven meshes by less than a point (``scripts/trace_meshes.py``).
What matters a little is how the two compare: what sums take besides products follows from it.
"""

from asap.hardware import Slice
from asap.hardware.chip import Chip, Network, Scaleup

_FLOPS, _BANDWIDTH = 2.5e10, 2e9
"""Of an eighth of two cores of a server: the products of small decoders in fp32 by YNN, copies of 128 MiB."""
_NO_LATENCY = 1e-9
"""Seconds. A virtual device that waits for others takes nothing from the cores."""
_SOURCE = "rounded from what XLA (products) and numpy (copies) reach on two cores of a server"

VIRTUAL_DEVICE = Chip(
    name="cpu",
    title="virtual CPU device",
    kind="gpu",
    peak_flops={"fp32": _FLOPS, "bf16": _FLOPS},
    matmul_tile=8,
    hbm_bytes=2**34,
    hbm_bandwidth=_BANDWIDTH,
    onchip_bytes=2**20,
    scaleup=Scaleup(domain=2**20, bandwidth=_BANDWIDTH / 2, latency=_NO_LATENCY),
    network=Network(bandwidth=_BANDWIDTH / 2, latency=_NO_LATENCY),
    sources=dict.fromkeys(
        ("peak_flops", "matmul_tile", "hbm_bytes", "hbm_bandwidth", "onchip_bytes", "scaleup", "network"), _SOURCE
    ),
)


def virtual_devices(count: int) -> Slice:
    """So many virtual devices of one host."""
    return Slice(VIRTUAL_DEVICE, count)
