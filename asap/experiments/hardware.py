"""What a user says about hardware, as the reference that an experiment keeps."""

from collections.abc import Sequence
from typing import Any

from asap.experiments.experiment import HardwareReference
from asap.hardware import ResolvedHardware, load_chip, parse_topology, resolve_hardware, with_network, with_node
from asap.hardware.instances import chips_per_node


def refer_to_hardware(
    name: str | None = None,
    topology: str | Sequence[int] | None = None,
    slices: int | None = None,
    devices: int | None = None,
) -> tuple[HardwareReference, tuple[str, ...]]:
    """The reference, and notes on how a name was read (``v5p-512`` has two readings; the topology decides).

    Without ``slices`` (and ``devices``, which count the whole job) the number of slices stays unsaid, and a
    configuration may say it. A topology without a name is kept; the chip is then unknown. Slices of no more GPUs than a
    node holds are nodes.

    Raises:
        NotFoundError: the chip is unknown.
        ConfigError: the parts contradict each other.
    """
    said: dict[str, Any] = {} if slices is None and devices is None else {"slices": slices or 1}
    if not name:
        return HardwareReference(topology=parse_topology(topology), devices=devices, **said), ()
    resolved = resolve_hardware(name, topology, slices or 1, devices)
    found = resolved.slice
    usual = chips_per_node(found.chip)
    if found.slices > 1 and usual is not None and found.chips_per_slice <= usual:
        return refer_to_hardware(f"{found.slices}x{found.chips_per_slice}x{found.chip.name}")
    if found.slices != 1:
        said = {"slices": found.slices}
    node = chips_per_node(found.chip)
    if node is not None and node < (chips_per_node(load_chip(found.chip.name)) or 0):
        said["node"] = node
    reference = HardwareReference(
        name=name, chip=found.chip.name, topology=found.topology, devices=found.devices, **said
    )
    return reference, resolved.notes


def resolve_reference(reference: HardwareReference) -> ResolvedHardware:
    """The slice that a reference describes, with its nodes and its network.

    Raises:
        NotFoundError: the chip is unknown.
        ConfigError: the parts contradict each other, or do not say how many chips there are.
    """
    name = reference.name or reference.chip
    resolved = resolve_hardware(name, reference.topology, reference.slices, reference.devices)
    found = resolved.slice if reference.node is None else with_node(resolved.slice, reference.node)
    found = found if reference.network is None else with_network(found, reference.network)
    return ResolvedHardware(found, resolved.notes)
