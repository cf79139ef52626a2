"""How long one collective takes: ring laws on a torus or on a GPU fabric.

"How to Scale Your Model", chapters 3 (sharding), 5 (training) and 12 (GPUs); ring algorithms: Patarasuk & Yuan 2009.
"""

from dataclasses import dataclass

import numpy as np

from asap.prediction.step_model.constants import Constants
from asap.prediction.step_model.inputs import Number, StepInputs


@dataclass(frozen=True, slots=True)
class Channel:
    """What a group of devices communicates over: bytes/s of one device, and seconds per step of the ring."""

    members: Number
    bandwidth: Number
    latency: Number


def channel(inputs: StepInputs, constants: Constants, members: Number, inner: Number, axes: Number = 1.0) -> Channel:
    """The ring of ``members`` devices, with ``inner`` devices of faster axes between two neighbours.

    On a torus a ring uses both directions of each of its ``axes``. On GPUs the ring stays inside the NVLink domain
    if it fits; beyond, each domain contributes the network ports of all its members of the ring.
    """
    machine = inputs.hardware
    inside = np.clip(machine.scaleup_domain / inner, 1.0, members)
    torus = 2 * axes * machine.link_bandwidth * constants.link_efficiency
    fabric = machine.link_bandwidth * constants.link_efficiency
    across = np.minimum(fabric, inside * machine.network_bandwidth * constants.network_efficiency)
    leaves = inside < members
    bandwidth = np.where(machine.tpu > 0, torus, np.where(leaves, across, fabric))
    hop = np.where(leaves & (machine.tpu == 0), machine.network_latency, machine.link_latency)
    return Channel(members, bandwidth, hop)


def network(inputs: StepInputs, constants: Constants, members: Number) -> Channel:
    """The ring over slices, through the data-centre network."""
    machine = inputs.hardware
    return Channel(members, machine.network_bandwidth * constants.network_efficiency, machine.network_latency)


def all_gather(size: Number, ring: Channel) -> Number:
    """Seconds until each of n devices has all ``size`` bytes: (n-1)/n of them pass each link."""
    return size * (ring.members - 1) / ring.members / ring.bandwidth + _hops(ring)


def reduce_scatter(size: Number, ring: Channel) -> Number:
    """The mirror image of an all-gather."""
    return all_gather(size, ring)


def all_reduce(size: Number, ring: Channel) -> Number:
    """A reduce-scatter and an all-gather."""
    return 2 * all_gather(size, ring)


def all_to_all(size: Number, ring: Channel, torus: Number) -> Number:
    """Each device sends (n-1)/n of its ``size`` bytes; on a ring the mean distance is n/4 hops, on a fabric one."""
    far = np.where(torus > 0, np.maximum(ring.members / 4, 1.0), 1.0)
    return size * (ring.members - 1) / ring.members * far / ring.bandwidth + _hops(ring)


def send(size: Number, ring: Channel) -> Number:
    """From one device to its neighbour."""
    return np.where(ring.members > 1, size / ring.bandwidth + ring.latency, 0.0)


def _hops(ring: Channel) -> Number:
    return ring.latency * (ring.members - 1)
