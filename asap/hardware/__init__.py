"""Chips and topologies as data, with the source of every figure."""

from asap.hardware.catalogue import find_chip, identify_chip, known_chips, load_chip
from asap.hardware.chip import Chip
from asap.hardware.instances import read_network, resize_node, set_network
from asap.hardware.names import ResolvedHardware, resolve_hardware
from asap.hardware.slices import Slice, default_topology, parse_topology

__all__ = [
    "Chip",
    "ResolvedHardware",
    "Slice",
    "default_topology",
    "find_chip",
    "identify_chip",
    "known_chips",
    "load_chip",
    "parse_topology",
    "read_network",
    "resize_node",
    "resolve_hardware",
    "set_network",
]
