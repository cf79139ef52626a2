"""How long one collective takes: ring laws on a torus or on a GPU fabric.

"How to Scale Your Model", chapters 3 (sharding), 5 (training) and 12 (GPUs); ring algorithms: Patarasuk & Yuan 2009.
"""

from dataclasses import dataclass

import numpy as np

from asap.prediction.step_model.constants import Constants
from asap.prediction.step_model.inputs import Number, StepInputs


@dataclass(frozen=True, slots=True)
class Channel:
    """What a group of devices communicates over.

    ``bandwidth`` is the bytes/s at which a ring passes one device, ``latency`` the seconds that one turn of it takes
    besides. Within a domain of ``inside`` members each sends over ``fabric``, to others over its own ``port``.
    """

    members: Number
    bandwidth: Number
    latency: Number
    inside: Number
    fabric: Number
    port: Number


def channel(inputs: StepInputs, constants: Constants, members: Number, inner: Number, axes: Number = 1.0) -> Channel:
    """The ring of ``members`` devices, with ``inner`` devices of faster axes between two neighbours.

    On a torus a ring uses both directions of each of its ``axes``. On GPUs the ring stays inside the NVLink domain
    if it fits. Beyond, the collective is hierarchical, inside each domain and then across: each domain contributes the
    network ports of all its members, and each step of a turn waits for the slowest hop, which is in the network.
    """
    machine = inputs.hardware
    inside = np.clip(machine.scaleup_domain / inner, 1.0, members)
    torus = 2 * axes * machine.link_bandwidth * constants.link_efficiency
    fabric = machine.link_bandwidth * constants.link_efficiency
    across = np.minimum(fabric, inside * machine.network_bandwidth * constants.network_efficiency)
    leaves = (inside < members) & (machine.tpu == 0)
    bandwidth = np.where(machine.tpu > 0, torus, np.where(leaves, across, fabric))
    turn = (members - 1) * np.where(leaves, machine.network_latency, machine.link_latency)
    port = np.where(leaves, machine.network_bandwidth * constants.network_efficiency, bandwidth)
    near = np.where(leaves, inside, members)
    return Channel(members, bandwidth, turn, near, np.where(leaves, fabric, bandwidth), port)


def network(inputs: StepInputs, constants: Constants, members: Number) -> Channel:
    """The ring over slices, through the data-centre network."""
    machine = inputs.hardware
    port = machine.network_bandwidth * constants.network_efficiency
    return Channel(members, port, (members - 1) * machine.network_latency, members, port, port)


def all_gather(size: Number, ring: Channel) -> Number:
    """Seconds until each of n devices has all ``size`` bytes: (n-1)/n of them pass each link."""
    return size * (ring.members - 1) / ring.members / ring.bandwidth + ring.latency


def reduce_scatter(size: Number, ring: Channel) -> Number:
    """The mirror image of an all-gather."""
    return all_gather(size, ring)


def all_reduce(size: Number, ring: Channel) -> Number:
    """A reduce-scatter and an all-gather."""
    return 2 * all_gather(size, ring)


def all_to_all(size: Number, ring: Channel, torus: Number, crossing: Number = 1.0) -> Number:
    """Each device sends (n-1)/n of its ``size`` bytes; on a ring the mean distance is n/4 hops, on a fabric one.

    What goes to other domains leaves through the device's own port, while the rest goes over the fabric; ``crossing``
    is the share of it that has to, where the other domain forwards what several of its members need.
    """
    far = np.where(torus > 0, np.maximum(ring.members / 4, 1.0), 1.0)
    near = size * (ring.inside - 1) / ring.members * far / ring.fabric
    across = size * (ring.members - ring.inside) / ring.members * crossing / ring.port
    return np.maximum(near, across) + ring.latency


def send(size: Number, ring: Channel) -> Number:
    """From one device to its neighbour."""
    hop = ring.latency / np.maximum(ring.members - 1, 1.0)
    return np.where(ring.members > 1, size / ring.bandwidth + hop, 0.0)
