"""The rate of the network between nodes, as a user says it: ``8x400Gb``, ``3200Gb/node``, ``50GB/gpu``."""

import re

from asap.core.errors import ConfigError
from asap.core.text import plain
from asap.hardware.chip import Chip
from asap.hardware.nodes import chips_per_node
from asap.hardware.slices import Slice

GBIT = 1e9 / 8
_UNITS = {"Gb": GBIT, "GB": 1e9, "Tb": 1e3 * GBIT, "TB": 1e12}
_RATE = re.compile(
    r"(?:(?P<ports>\d{1,2})\s*[x×]\s*)?(?P<number>\d{1,5}(?:\.\d{1,3})?)\s*(?P<unit>[GT][bB])(?:it)?(?:ps|/s)?"
    r"\s*(?:(?:/|per|a)\s*(?P<of>node|gpu|chip|device))?",
    re.ASCII,
)
_HINT = "write 8x400Gb (ports of a node), 3200Gb/node or 400Gb/gpu"


def read_network(text: str, chip: Chip) -> float:
    """Bytes/s of one device into the network, in one direction.

    Raises:
        ConfigError: it is no rate, or does not say of what: a node or one device.
    """
    found = _RATE.fullmatch(text.strip())
    if found is None or float(found["number"]) <= 0:
        raise ConfigError("is no rate of a network", where=plain(text, 60), hint=_HINT)
    rate = float(found["number"]) * _UNITS[found["unit"]] * int(found["ports"] or 1)
    if found["of"] in ("gpu", "chip", "device"):
        return rate
    node = chips_per_node(chip)
    if node is None:
        raise ConfigError(f"has to be the rate of one {chip.title}", where=plain(text, 60), hint="write 50Gb/chip")
    if found["of"] == "node" or found["ports"]:
        return rate / node
    raise ConfigError("does not say of what: of a node, or of one GPU", where=plain(text, 60), hint=_HINT)


def with_network(hardware: Slice, rate: float) -> Slice:
    """The same chips on a network of a stated rate, bytes/s of one device."""
    network = hardware.chip.network.model_copy(update={"bandwidth": rate, "stated": True})
    chip = hardware.chip.model_copy(update={"network": network})
    return Slice(chip, hardware.chips_per_slice, hardware.topology, hardware.slices)
