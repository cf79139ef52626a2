"""The hardware as a log names it: nvidia-smi, JAX, PyTorch, NCCL, launchers, benchmark suites."""

import math
import re
from collections.abc import Mapping

from asap.core.errors import AsapError
from asap.experiments.logs.formats import DeviceForm
from asap.experiments.logs.reading import LogHardware
from asap.experiments.logs.scan import Scan
from asap.hardware import Slice, find_chip, known_chips, load_chip, resolve_hardware

_MAKERS = re.compile(
    r"\b(?:NVIDIA|AMD|Tesla|Instinct|GeForce|Graphics Device|HBM\d\w*|PCIe?|SXM\d?|OAM)\b", re.IGNORECASE
)
_MEMORY = re.compile(r"(\d{2,3}) ?GB", re.IGNORECASE)
_TPUS = {"tpu v2": "v2", "tpu v3": "v3", "tpu v4": "v4", "tpu v5 lite": "v5e", "tpu v5e": "v5e", "tpu v5": "v5p",
         "tpu v5p": "v5p", "tpu v6 lite": "v6e", "tpu v6e": "v6e", "tpu7x": "tpu7x", "tpu v7x": "tpu7x"}  # fmt: skip
"""``device_kind`` of JAX. ``TPU v5`` is v5p: v5e calls itself ``TPU v5 lite``."""


_COUNTS = ("nodes", "devices_per_node", "devices", "slices")
_FOLDED = ("ep", "etp", "dp_mod_ep", "dp_shard_mod_ep", "dp_shard_in_ep", "batch", "loss", "efsdp")
"""Axes of torchtitan that lie over others of the mesh."""


def hardware_of(found: Scan, said: Mapping[str, str]) -> LogHardware:
    """Chip, devices and nodes, where the log has them."""
    named, memory, slice_name = None, None, None
    counts: dict[str, int] = {}
    for one in found.devices:
        if not isinstance(one.form, DeviceForm) or (match := one.form.pattern.search(one.text)) is None:
            continue
        fields = {name: text for name, text in match.groupdict().items() if text}
        named = fields.get("chip", named) if "..." not in fields.get("chip", "") or named is None else named
        if "memory_gib" in fields:
            memory = float(fields["memory_gib"])
        if "memory_mib" in fields:
            memory = float(fields["memory_mib"]) / 1024
        counts |= {name: int(fields[name]) for name in _COUNTS if name in fields}
        slice_name = fields.get("slice", slice_name)
    for name in ("devices", "nodes", "devices_per_node"):
        if name in said and said[name].isdigit():
            counts[name] = int(said[name])
    devices = counts.get("devices") or counts.get("nodes", 0) * counts.get("devices_per_node", 0) or None
    mesh = {k.removeprefix("mesh."): int(v) for k, v in said.items() if k.startswith("mesh.") and v.isdigit()}
    if devices is None and mesh:
        devices = math.prod(degree for axis, degree in mesh.items() if axis not in _FOLDED) or None
    chip = chip_of(named, memory) if named else None
    if resolved := _slice(slice_name, counts.get("slices", 1)):
        named, chip, devices = slice_name, resolved.chip.name, devices or resolved.devices
    return LogHardware(
        chip=chip,
        named=named.strip() if named else None,
        devices=devices,
        nodes=counts.get("nodes"),
        devices_per_node=counts.get("devices_per_node"),
        network=said.get("network", "").strip() or None,
    )


def chip_of(named: str, memory_gib: float | None = None) -> str | None:
    """The chip that a device's name means: the exact name, else the family with the memory that fits; or ``None``.

    Args:
        named: as drivers, JAX or PyTorch call it: ``NVIDIA H100 80GB HBM3``, ``TPU v5 lite``, ``Tesla V100-SXM2...``.
        memory_gib: of the device, where the log has it.
    """
    lowered = " ".join(named.casefold().replace("(", " ").split())
    if lowered in _TPUS:
        return _TPUS[lowered] if find_chip(_TPUS[lowered]) else None
    if found := find_chip(named):
        exact = found.chip.name
        return _sibling(exact, memory_gib) if memory_gib else exact
    size = _MEMORY.search(named)
    memory = memory_gib or (float(size[1]) if size else None)
    bare = _MEMORY.sub(" ", _MAKERS.sub(" ", named.split("...")[0]))
    for word in re.findall(r"[A-Za-z]+\d+[A-Za-z]*", bare):
        if found := find_chip(word):
            return _sibling(found.chip.name, memory) if memory else found.chip.name
    return None


def _sibling(name: str, memory_gib: float) -> str | None:
    """Of chips that differ in memory alone (``a100-40gb``, ``a100-80gb``) the one with such memory."""
    family = name.partition("-")[0]
    known = [load_chip(each) for each in known_chips() if each.partition("-")[0] == family]
    near = min(known, key=lambda chip: abs(chip.hbm_bytes / 2**30 - memory_gib))
    return near.name if abs(near.hbm_bytes / 2**30 / memory_gib - 1) < 0.15 else None


def _slice(name: str | None, slices: int) -> Slice | None:
    """The slice of TPUs that Google's accelerator type means, as many times as there are."""
    try:
        return resolve_hardware(name, slices=slices).slice if name else None
    except AsapError:
        return None
