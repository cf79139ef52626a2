"""The machine, in numbers."""

import math
import re

from asap.hardware import Chip
from asap.hardware.slices import Slice
from asap.models import Workload
from asap.prediction.step_model.groups import generation, has_kernel_of_the_chip, kernel_of, precision_class
from asap.prediction.step_model.inputs import HardwareInputs

FIRST_FLASH = 0.5
"""Rate of FlashAttention over that of FlashAttention-2, "around 2× speedup" (arXiv:2307.08691, abstract)."""
FLEX_ON_BLACKWELL = 0.45
"""Rate of FlexAttention in Triton over that of FlashAttention-4, which takes 1.6 to 3.2 times less time forward and
1.85 to 2.3 times less backward (PyTorch, "FlexAttention + FlashAttention-4: Fast and Flexible", 2026)."""
_BLACKWELL = ("b200", "b300")
_SECOND = r"(flash.?att(entio)?n|flash|\bfa).?2"


def attention_rate(workload: Workload, chip: Chip) -> float:
    """Share of the rate of a fused kernel of today."""
    kernel = FIRST_FLASH if kernel_of(workload, chip.kind) == "flash-1" else 1.0
    if generation(chip.name) in _BLACKWELL:
        return kernel * _rate_on_blackwell(workload, chip)
    ported = not has_kernel_of_the_chip(workload.attention, workload.framework)
    return kernel * (chip.ported_attention if ported else 1.0)


def _rate_on_blackwell(workload: Workload, chip: Chip) -> float:
    """There PyTorch's own attention calls cuDNN (``check_prefer_cudnn_attention`` in its ``sdp_utils.cpp``), so that
    FlashAttention-2 has to be said, or ``varlen``, which calls it (``torch.nn.attention.varlen``)."""
    said = (workload.attention or "").casefold()
    of_the_chip = has_kernel_of_the_chip(workload.attention, workload.framework)
    if re.search(_SECOND, said) or ("varlen" in said and not of_the_chip):
        return chip.ported_attention
    return FLEX_ON_BLACKWELL if "flex" in said and not of_the_chip else 1.0


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
