"""Machines with GPUs as clouds rent them: ``p5.48xlarge``, ``a3-megagpu-8g``, ``ND96isr_H100_v5``.

Their GPUs are those of the makers' own machines, and the network between them is not.
"""

import difflib
import re
from functools import cache
from pathlib import Path

from pydantic import BaseModel, ConfigDict, PositiveFloat, PositiveInt

from asap.core.errors import ConfigError
from asap.core.numbers import parse_toml
from asap.core.text import plain
from asap.core.units import exact
from asap.hardware.catalogue import load_chip
from asap.hardware.chip import Chip
from asap.hardware.slices import Slice

LARGEST_NODE = 16
"""GPUs of the largest server. What the fast links of a chip join beyond it is a rack, of which a server is a part."""


def chips_per_node(chip: Chip) -> int | None:
    """Chips of a server; ``None`` where chips reach each other beyond it, or it is not on record."""
    return chip.scaleup.domain if chip.scaleup and chip.scaleup.domain <= LARGEST_NODE else None


def resize_node(hardware: Slice, gpus: int) -> Slice:
    """The same GPUs in nodes of so many: their fast links join no more; the same where a node holds as many anyway."""
    chip = hardware.chip
    usual = chips_per_node(chip)
    if usual is None or chip.scaleup is None or gpus >= usual:
        return hardware
    smaller = chip.model_copy(update={"scaleup": chip.scaleup.model_copy(update={"domain": gpus})})
    return Slice(smaller, hardware.chips_per_slice, hardware.topology, hardware.slices)


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


def set_network(hardware: Slice, rate: float) -> Slice:
    """The same chips on a network of a stated rate, bytes/s of one device."""
    network = hardware.chip.network.model_copy(update={"bandwidth": rate, "stated": True})
    chip = hardware.chip.model_copy(update={"network": network})
    return Slice(chip, hardware.chips_per_slice, hardware.topology, hardware.slices)


_BUNDLED = Path(__file__).parent / "instances.toml"
_NEAREST, _ALIKE = 3, 0.75
_VENDORS = re.compile(r"^(standard_|aws\s+|amazon\s+|azure\s+|gcp\s+|oci\s+)", re.IGNORECASE)


class Fabric(BaseModel):
    """A network whose messages take longer than those on InfiniBand."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    latency: PositiveFloat
    """Seconds per message."""
    source: str


class Instance(BaseModel):
    """A machine of a cloud."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: str
    chip: str
    """Key of a chip."""
    gpus: PositiveInt
    network: PositiveFloat
    """Gbit/s into the network between machines, of all its GPUs together."""
    fabric: str | None = None

    @property
    def description(self) -> str:
        """``p4d.24xlarge: 8 NVIDIA A100 40 GB, 400 Gbit/s between machines``."""
        return f"{self.name}: {self.gpus} {load_chip(self.chip).title}, {exact(self.network)} Gbit/s between machines"

    @property
    def machine(self) -> Chip:
        """Its chip, with the network and the NVLink domain of the machine."""
        chip = load_chip(self.chip)
        fabric = fabrics().get(self.fabric or "")
        network = {"bandwidth": self.network * GBIT / self.gpus, "stated": True}
        if fabric is not None:
            network["latency"] = fabric.latency
        update: dict[str, object] = {"network": chip.network.model_copy(update=network)}
        if chip.scaleup is not None:
            update["scaleup"] = chip.scaleup.model_copy(update={"domain": self.gpus})
        return chip.model_copy(update=update)


class _Cloud(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")

    source: str
    machines: tuple[Instance, ...]


class _Instances(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")

    fabrics: dict[str, Fabric]
    clouds: dict[str, _Cloud]


def find_instance(name: str) -> Instance | None:
    """The machine that a cloud calls so, in any case; ``None`` for an unknown name."""
    return _by_name().get(_key(name))


def near_instances(name: str) -> tuple[str, ...]:
    """Machines whose names are nearly this one; none where it is nothing like them."""
    near = difflib.get_close_matches(_key(name), _by_name(), n=_NEAREST, cutoff=_ALIKE)
    return tuple(_by_name()[key].name for key in near)


def known_instances() -> tuple[str, ...]:
    """The names of all machines, cloud by cloud."""
    return tuple(each.name for each in _by_name().values())


def _key(name: str) -> str:
    return _VENDORS.sub("", name.strip()).casefold()


def fabrics() -> dict[str, Fabric]:
    """Networks by name."""
    return _bundled().fabrics


@cache
def _bundled() -> _Instances:
    return _Instances.model_validate(parse_toml(_BUNDLED.read_text(encoding="utf-8"), str(_BUNDLED)))


@cache
def _by_name() -> dict[str, Instance]:
    return {each.name.casefold(): each for cloud in _bundled().clouds.values() for each in cloud.machines}
