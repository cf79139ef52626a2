"""Chips and topologies as data, with the source of every figure."""

from asap.hardware.catalogue import find_chip, identify_chip, known_chips, load_chip
from asap.hardware.chip import Chip
from asap.hardware.names import ResolvedHardware, resolve_hardware
from asap.hardware.network_rate import read_network, with_network
from asap.hardware.nodes import with_node
from asap.hardware.shapes import default_topology, parse_topology
from asap.hardware.slices import Slice

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
    "resolve_hardware",
    "with_network",
    "with_node",
]
