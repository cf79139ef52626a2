"""The machine, in numbers."""

import math

from asap.hardware.slices import Slice
from asap.models import Workload
from asap.prediction.step_model.encoding.attention_kernel import attention_rate
from asap.prediction.step_model.groups import precision_class
from asap.prediction.step_model.inputs import HardwareInputs

SLOWEST_HOST_LINK = 1.6e10
"""Bytes/s to the host in one direction, where a chip's maker publishes none: that of the slowest chip that has one."""


def hardware_inputs(hardware: Slice, workload: Workload) -> HardwareInputs:
    """Rates of one JAX device."""
    chip, share = hardware.chip, hardware.chip.devices
    half = chip.peak_flops.get("bf16") or chip.peak_flops["fp16"]
    said, kind = (workload.precision or "").casefold(), precision_class(workload.precision)
    peak = chip.peak_flops.get(said) or chip.peak_flops.get(kind, half)
    used = [axis for axis, length in enumerate(hardware.topology or ()) if length > 1]
    sides = (*map(float, hardware.topology or ()), 1.0, 1.0, 1.0)[:3]
    links = (*(2.0 if wraps else 1.0 for wraps in hardware.wraps), 1.0, 1.0, 1.0)[:3]
    if chip.torus is not None:
        link = chip.torus.link_bandwidth
        domain, latency = hardware.devices_per_slice, chip.torus.latency
    else:
        assert chip.scaleup is not None
        link, domain, latency = chip.scaleup.bandwidth, chip.scaleup.domain, chip.scaleup.latency
    return HardwareInputs(
        tpu=float(chip.kind == "tpu"),
        peak_matmul=peak / share,
        peak_bf16=half / share,
        peak_attention=half / share * attention_rate(workload, chip),
        hbm_bytes=chip.device_capacity,
        hbm_bandwidth=chip.hbm_bandwidth / share,
        host_bandwidth=(chip.host_bandwidth or SLOWEST_HOST_LINK) / share,
        host_bytes=(chip.host_memory or math.inf) / share,
        link_bandwidth=link / share,
        torus_axes=max(len(used), 1),
        **dict(zip(("torus_x", "torus_y", "torus_z"), sides, strict=True)),
        **dict(zip(("links_x", "links_y", "links_z"), links, strict=True)),
        scaleup_domain=domain,
        link_latency=latency,
        network_bandwidth=chip.network.bandwidth / share,
        network_latency=chip.network.latency,
    )
