"""Rates of the machine, in numbers."""

from dataclasses import dataclass

from asap.prediction.step_model.inputs.number import Number


@dataclass(frozen=True, slots=True)
class HardwareInputs:
    """Rates of one device and of what joins devices."""

    tpu: Number
    """Switch: a TPU on a torus; else a GPU on NVLink and a fabric."""
    peak_matmul: Number
    """FLOP/s in the precision of the workload."""
    peak_bf16: Number
    """FLOP/s in bf16."""
    peak_attention: Number
    """FLOP/s in bf16 that a fused attention kernel can use."""
    hbm_bytes: Number
    """Bytes."""
    hbm_bandwidth: Number
    """Bytes/s."""
    host_bandwidth: Number
    """Bytes/s between HBM and host memory, in one direction."""
    host_bytes: Number
    """Bytes of host memory for one device; without a limit where they are not known."""
    link_bandwidth: Number
    """Bytes/s in one direction: of one ICI link, or into NVLink."""
    torus_axes: Number
    """Axes of the torus that are longer than 1."""
    torus_x: Number
    """Devices along the first axis of the torus; 1 where there is none."""
    torus_y: Number
    """Along the second."""
    torus_z: Number
    """Along the third."""
    links_x: Number
    """Links over which a ring along the first axis sends at once: 2 if the axis closes, else 1."""
    links_y: Number
    """Along the second."""
    links_z: Number
    """Along the third."""
    scaleup_domain: Number
    """Devices that ICI or NVLink joins."""
    link_latency: Number
    """Seconds per hop on ICI or NVLink."""
    network_bandwidth: Number
    """Bytes/s into the network between nodes or slices."""
    network_latency: Number
    """Seconds per hop between nodes or slices."""
