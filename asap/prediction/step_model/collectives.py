"""How long one collective takes: ring laws on a torus or on a GPU fabric.

"How to Scale Your Model", chapters 3 (sharding), 5 (training) and 12 (GPUs); ring algorithms: Patarasuk & Yuan 2009.
"""

from dataclasses import dataclass, fields, replace

import numpy as np

from asap.prediction.step_model.constants import Constants
from asap.prediction.step_model.inputs import Number, StepInputs, anywhere, select
from asap.prediction.step_model.torus import links_of

SMALL_GROUP = 0.6
"""Of the rate of a large group on NVLink a group of n reaches ``1 - SMALL_GROUP / n``: NCCL's gathers, scatters and
reductions among 2, 4 and 8 A100, H100 and B200 (tests/data/kernels/collectives.tsv)."""
FEW_PORTS = 1.5
"""Ports of a node whose rate ZeRO-3 gets: of one, 1.5, 2, 3, 4 and all, that which is nearest to each of the two
published sources that gather over nodes (arXiv:2104.04473, table 2; ``xtuner_longseq`` of the measurements)."""
TINY = 1e-12


@dataclass(frozen=True, slots=True)
class Channel:
    """What a group of devices communicates over.

    ``bandwidth`` is the bytes/s at which a ring passes one device, ``latency`` the seconds that one turn of it takes
    besides, ``hop`` those of one message to a neighbour, and ``farthest`` the hops on a torus to the farthest member.
    Within a domain of ``inside`` members each sends over ``fabric``, to others over its own ``port``. ``ramp`` is the
    seconds that a long message takes until it flows at the full rate.
    """

    members: Number
    bandwidth: Number
    latency: Number
    hop: Number
    inside: Number
    fabric: Number
    port: Number
    farthest: Number = 1.0
    ramp: Number = 0.0


def channel(inputs: StepInputs, constants: Constants, members: Number, inner: Number) -> Channel:
    """The ring of ``members`` devices, with ``inner`` devices of faster axes between two neighbours.

    Args:
        inputs: of the step.
        constants: of the step.
        members: of the ring.
        inner: devices between two neighbours.
    """
    on_tpu = inputs.hardware.tpu > 0
    if np.all(on_tpu):
        return _torus(inputs, constants, members, inner)
    switched = _switched(inputs, constants, members, inner)
    if not anywhere(inputs.hardware.tpu):
        return switched
    torus = _torus(inputs, constants, members, inner)
    names = [field.name for field in fields(Channel)]
    return Channel(**{name: np.where(on_tpu, getattr(torus, name), getattr(switched, name)) for name in names})


def _torus(inputs: StepInputs, constants: Constants, members: Number, inner: Number) -> Channel:
    """Over all links that the group's place on the torus leaves it; a message goes half around each axis that a ring
    needs which is longer than one ("How to Scale Your Model", chapter 3)."""
    machine = inputs.hardware
    bandwidth = links_of(machine, members, inner) * machine.link_bandwidth * constants.link_efficiency
    longest = np.maximum(machine.scaleup_domain ** (1 / machine.torus_axes), 2.0)
    axes = np.maximum(1.0, np.log(np.maximum(members, 1.0)) / np.log(longest))
    farthest = np.where(members > 1, axes * np.minimum(members, longest) / 2, 0.0)
    around = farthest * machine.link_latency
    return Channel(members, bandwidth, around, machine.link_latency, members, bandwidth, bandwidth, farthest)


def _switched(inputs: StepInputs, constants: Constants, members: Number, inner: Number) -> Channel:
    """On GPUs the ring stays inside the NVLink domain if it fits.

    Beyond, the collective is hierarchical, inside each domain and then across: each domain contributes the network
    ports of all its members. A turn has a hop through the network from domain to domain, and all others on NVLink
    (NCCL, ``src/graph/tuning.cc``, latencies of a ring).
    """
    machine = inputs.hardware
    inside = np.clip(machine.scaleup_domain / inner, 1.0, members)
    leaves = inside < members
    fabric = machine.link_bandwidth * constants.link_efficiency * (1 - SMALL_GROUP / np.maximum(inside, 2.0))
    own_port = machine.network_bandwidth * constants.network_efficiency
    bandwidth = np.where(leaves, np.minimum(fabric, inside * own_port), fabric)
    crossings = np.ceil(members / inside) - 1
    turn = crossings * machine.network_latency + (members - 1 - crossings) * machine.link_latency
    hop = np.where(leaves, machine.network_latency, machine.link_latency)
    port = np.where(leaves, own_port, fabric)
    return Channel(members, bandwidth, turn, hop, inside, fabric, port, ramp=constants.collective_ramp)


def network(inputs: StepInputs, constants: Constants, members: Number) -> Channel:
    """The ring over slices, through the data-centre network."""
    machine = inputs.hardware
    port = machine.network_bandwidth * constants.network_efficiency
    turn = (members - 1) * machine.network_latency
    return Channel(members, port, turn, machine.network_latency, members, port, port)


def through_few_ports(ring: Channel, which: Number, port: Number) -> Channel:
    """The ring, at the rate of :data:`FEW_PORTS` of so many bytes/s where it leaves a domain, for steps of which the
    switch is on."""
    few = np.where(ring.inside < ring.members, np.minimum(ring.bandwidth, FEW_PORTS * port), ring.bandwidth)
    return replace(ring, bandwidth=select(which, few, ring.bandwidth))


def all_gather(size: Number, ring: Channel) -> Number:
    """Seconds until each of n devices has all ``size`` bytes: (n-1)/n of them pass each link."""
    return ramped(size * (ring.members - 1) / ring.members / ring.bandwidth, ring) + ring.latency


def reduce_scatter(size: Number, ring: Channel) -> Number:
    """The mirror image of an all-gather."""
    return all_gather(size, ring)


def all_reduce(size: Number, ring: Channel) -> Number:
    """A reduce-scatter and an all-gather. Within a node of GPUs NCCL runs both in one kernel, which speeds up once, and
    takes trees, or switches that reduce, where a message is short: it waits for one turn of the ring, not for two
    (tests/data/kernels/collectives.tsv)."""
    twice = 2 * all_gather(size, ring)
    if not anywhere(ring.ramp):
        return twice
    moved = 2 * size * (ring.members - 1) / ring.members / ring.bandwidth
    once = (ring.ramp > 0) & (ring.inside >= ring.members)
    return np.where(once, ramped(moved, ring) + ring.latency, twice)


def all_to_all(size: Number, ring: Channel, torus: Number, crossing: Number = 1.0) -> Number:
    """Each device sends (n-1)/n of its ``size`` bytes, to all others at once.

    On a torus the mean distance is a quarter of each axis, on a fabric one hop. What goes to other domains leaves
    through the device's own port, while the rest goes over the fabric; ``crossing`` is the share of it that has to,
    where the other domain forwards what several of its members need.
    """
    far = select(torus, np.maximum(ring.farthest / 2, 1.0), 1.0)
    near = size * (ring.inside - 1) / ring.members * far / ring.fabric
    across = size * (ring.members - ring.inside) / ring.members * crossing / ring.port
    return ramped(np.maximum(near, across), ring) + np.where(ring.members > 1, ring.hop, 0.0)


def ramped(seconds: Number, ring: Channel) -> Number:
    """Seconds of a transfer that takes so many at the full rate: short ones never reach it, long ones lose the ramp."""
    if not anywhere(ring.ramp):
        return seconds
    return seconds * (1 + ring.ramp / np.maximum(seconds + ring.ramp, TINY))


def send(size: Number, ring: Channel) -> Number:
    """From one device to its neighbour."""
    return np.where(ring.members > 1, size / ring.bandwidth + ring.hop, 0.0)
