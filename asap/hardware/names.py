"""Cloud names of hardware, resolved to a slice.

Names count TensorCores (``v5p-512`` is 256 chips), which equals chips where a chip has one core (v5e, v6e,
GPUs); a number before a machine of a cloud counts machines (``8x p5.48xlarge``). Where a stated topology or number of
devices says otherwise, it decides, and a note shows both readings.
"""

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass

from asap.core.errors import ConfigError, NotFoundError
from asap.core.text import plain
from asap.core.units import counted
from asap.hardware.catalogue import find_chip, identify_chip
from asap.hardware.chip import Chip
from asap.hardware.instances import Instance, chips_per_node, find_instance, near_instances, resize_node
from asap.hardware.slices import Slice, cube_topologies, default_topology, format_topology, parse_topology

_TIMES = re.compile(r"\s{0,9}(\d{1,6})\s{0,9}[x×*]\s*(?=\D)", re.ASCII)
_NODES = re.compile(r"\s{0,9}(\d{1,6})\s{0,9}[x×*]\s{0,9}(\d{1,3})\s{0,9}[x×*]\s*(?=\D)", re.ASCII)
"""``4x2xA800``: four nodes of two GPUs."""
_SIZE = re.compile(
    r"(?:[\s:_-]{1,9}|\s{1,9}[x×]\s{1,9}|(?<![a-z])[x×])(\d{1,6}(?:x\d{1,5})*)\s*$", re.ASCII | re.IGNORECASE
)
_BOX = re.compile(r"\b(dgx|hgx)\b", re.IGNORECASE)
_SHOWN = 60


@dataclass(frozen=True)
class ResolvedHardware:
    """The slice behind a name, and what a reader should know about how the name was read."""

    slice: Slice
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class HardwareName:
    """A name in parts: ``16x v5e-256`` is 16 times v5e of size 256; ``boxes`` where it names a machine, not a chip.

    ``instance`` is the machine of a cloud that it names, and ``node`` the GPUs of a node, where it says them.
    """

    text: str
    chip: Chip
    times: int | None = None
    size: int | None = None
    topology: tuple[int, ...] | None = None
    notes: tuple[str, ...] = ()
    boxes: bool = False
    instance: str | None = None
    node: int | None = None

    @classmethod
    def parse(cls, name: str) -> "HardwareName":
        """Read a chip, optionally with a count before it and a size or topology after it.

        Raises:
            NotFoundError: the chip is unknown.
            ConfigError: the size is zero.
        """
        text, times, rest, size = plain(name, _SHOWN), None, name, None
        if nodes := _NODES.match(name):
            return cls._from_nodes(text, int(nodes[1]), int(nodes[2]), name[nodes.end() :])
        if prefix := _TIMES.match(rest):
            times, rest = int(prefix[1]), rest[prefix.end() :]
        if find_chip(rest) is None and find_instance(rest) is None and (suffix := _SIZE.search(rest)):
            size, rest = suffix[1].casefold(), rest[: suffix.start()]
        if instance := find_instance(rest):
            return cls._from_instance(text, instance, times, size)
        if find_chip(rest) is None and (near := near_instances(rest)):
            raise NotFoundError(
                f"unknown machine {plain(rest.strip(), _SHOWN)!r}", hint=f"did you mean {' or '.join(near)}?"
            )
        found = identify_chip(rest)
        if size and size.isdigit() and int(size) < 1:
            raise ConfigError("the size must be at least 1", where=text)
        if size and "x" in size:
            return cls(text, found.chip, times, None, parse_topology(size), found.notes)
        boxes = size is None and _BOX.search(rest) is not None
        return cls(text, found.chip, times, int(size) if size else None, None, found.notes, boxes)

    @classmethod
    def _from_nodes(cls, text: str, nodes: int, each: int, chip: str) -> "HardwareName":
        """``4x2xA800`` are four nodes of two GPUs each."""
        found = identify_chip(chip)
        if found.chip.torus is not None or nodes < 1 or each < 1:
            raise ConfigError("has to be nodes x GPUs of a node x GPU", where=text, hint="write it like 4x2xA800")
        return cls(text, found.chip, size=nodes * each, notes=found.notes, node=each)

    @classmethod
    def _from_instance(cls, text: str, instance: Instance, times: int | None, size: str | None) -> "HardwareName":
        """``8x p5.48xlarge`` are eight machines, ``p5.48xlarge-64`` 64 GPUs."""
        if size is not None and (times is not None or not size.isdigit() or int(size) < 1):
            hint = f"write 8x {instance.name}, or {instance.name}-{8 * instance.gpus}"
            raise ConfigError("must count either machines or GPUs, at least one", where=text, hint=hint)
        gpus = int(size) if size else times * instance.gpus if times else None
        chip, notes = instance.machine, (instance.description,)
        return cls(text, chip, size=gpus, notes=notes, boxes=gpus is None, instance=instance.name)


def resolve_hardware(
    name: str | None = None,
    topology: str | Sequence[int] | None = None,
    slices: int = 1,
    devices: int | None = None,
) -> ResolvedHardware:
    """The slice that a name (``v5e-256``, ``8xH100``, ``tpu7x-4x4x8``), a topology and counts describe together.

    Args:
        name: the name, as a cloud or the user writes it.
        topology: chips along each torus axis of one slice, ``8x8x8``.
        slices: slices that the job spans.
        devices: JAX devices of the whole job.

    Raises:
        NotFoundError: the chip is unknown.
        ConfigError: the parts contradict each other, or do not say how many chips there are.
    """
    if not name:
        raise ConfigError("the chip is not known", where="hardware", hint="give a name such as v5e-256 or h100-64")
    if slices < 1 or (devices is not None and devices < 1):
        raise ConfigError("slices and devices must be at least 1", where=plain(name, _SHOWN))
    parts = HardwareName.parse(name)
    shape = parse_topology(topology)
    if shape and parts.topology and shape != parts.topology:
        raise ConfigError(f"the name contradicts the topology {format_topology(shape)}", where=parts.text)
    resolved = _tpus if parts.chip.torus else _gpus
    found = resolved(parts, shape or parts.topology, slices, devices)
    if devices is not None and found.slice.devices != devices:
        reason = f"has {found.slice.devices} JAX devices, not {devices}"
        raise ConfigError(reason, where=parts.text, hint="correct the name, the topology, the slices or the devices")
    return ResolvedHardware(_in_nodes(found.slice, parts.node), parts.notes + found.notes)


def _in_nodes(hardware: Slice, node: int | None) -> Slice:
    """GPUs in nodes as they are said; slices share no fast links."""
    found = resize_node(hardware, node) if node else hardware
    return resize_node(found, found.chips_per_slice) if found.slices > 1 else found


def _gpus(name: HardwareName, shape: tuple[int, ...] | None, slices: int, devices: int | None) -> ResolvedHardware:
    if shape and (shape != name.topology or len(shape) != 2):
        reason = f"{name.chip.title} has no torus, so it takes no topology"
        raise ConfigError(reason, where=name.text, hint="give the number of GPUs")
    size, times = (name.size, name.times) if shape is None else shape
    if times is not None and name.boxes:
        raise _asked_back(name, times)
    if times is not None and size is not None:
        if slices not in (1, times):
            raise ConfigError(f"the name contradicts {slices} slices", where=name.text)
        return ResolvedHardware(Slice(name.chip, size, None, times))
    if size is None and times is None:
        return ResolvedHardware(Slice(name.chip, _per_slice(name, slices, devices), None, slices))
    total = size or times or 1
    if slices > 1 and devices is None and total > _domain(name.chip):
        each = f"{slices}x {name.chip.name}-{total // slices}" if total % slices == 0 else f"{slices} slices of them"
        raise ConfigError(
            f"with {slices} slices is {total} GPUs in all or {total * slices}: which?", where=name.text,
            hint=f"write {each}, or {slices}x {name.chip.name}-{total}",
        )  # fmt: skip
    if devices == total:  # the name counts the whole job
        return ResolvedHardware(Slice(name.chip, total // slices, None, slices))
    return ResolvedHardware(Slice(name.chip, total, None, slices), _read_gpus(name))


def _read_gpus(name: HardwareName) -> tuple[str, ...]:
    """That ``2xMI300X`` counts GPUs, where one may mean nodes by it: they are fewer than a node has."""
    each, times = chips_per_node(name.chip) or 1, name.times
    if times is None or name.size is not None or not 1 < times < each:
        return ()
    return (f"{name.text} is taken for {times} GPUs; {times} nodes of {each} are {times}x{each}x{name.chip.name}",)


def _domain(chip: Chip) -> int:
    """GPUs that the scale-up network joins."""
    return chip.scaleup.domain if chip.scaleup else 1


def _asked_back(name: HardwareName, times: int) -> ConfigError:
    """A count of boxes or of GPUs, which differ: the user has to say which."""
    chip, domain = name.chip.name, _domain(name.chip)
    return ConfigError(
        f"is {times} GPUs, or {times} machines of {domain}: which?",
        where=name.text, hint=f"write {chip}-{times}, or {times}x {chip}-{domain}",
    )  # fmt: skip


def _tpus(name: HardwareName, shape: tuple[int, ...] | None, slices: int, devices: int | None) -> ResolvedHardware:
    if name.times is not None and (name.size or shape):
        if slices not in (1, name.times):
            raise ConfigError(f"the name contradicts {slices} slices", where=name.text)
        slices = name.times
    if shape:
        chips = math.prod(shape)
    elif name.size:
        chips = _sized(name, name.size, slices, devices)
    else:
        chips = name.times or _per_slice(name, slices, devices)
    notes = _readings(name, chips, shape)
    if shape is None:
        shape, noted = _assumed(name, chips)
        notes += noted
    return ResolvedHardware(Slice(name.chip, chips, shape, slices), notes)


def _per_slice(name: HardwareName, slices: int, devices: int | None) -> int:
    if devices is None:
        reason, hint = "names the chip, but not how many", f"{name.chip.name}-8 for eight; or add a topology"
        if name.boxes:
            each = f"8x {name.instance}" if name.instance else f"{name.chip.name}-64 for 64 GPUs"
            reason, hint = "names the machine, but not how many", f"write {each}"
        raise ConfigError(reason, where=name.text, hint=hint)
    chips, rest = divmod(devices, slices * name.chip.devices)
    if rest or chips < 1:
        raise ConfigError(
            f"{devices} JAX devices are not a whole number of chips in {counted(slices, 'slice')}", where=name.text
        )
    return chips


def _sized(name: HardwareName, size: int, slices: int, devices: int | None) -> int:
    """Chips of a slice that the name's number stands for: TensorCores, unless only chips agree with the devices."""
    chips, rest = divmod(size, name.chip.cores)
    if devices == size * name.chip.devices * slices != chips * name.chip.devices * slices:
        return size
    if rest or chips < 1:
        raise ConfigError(f"{size} TensorCores are not a whole number of chips with {name.chip.cores}", where=name.text)
    return chips


def _readings(name: HardwareName, chips: int, shape: tuple[int, ...] | None) -> tuple[str, ...]:
    cores, size = name.chip.cores, name.size
    if size is None:
        return ()
    if size not in (chips, chips * cores):
        counted = f"{size // cores} chips" if cores > 1 else f"{size} chips"
        raise ConfigError(f"means {counted}, but {format_topology(shape or ())} has {chips}", where=name.text)
    if cores == 1:
        return ()
    if size == chips * cores:
        return (f"{name.text} is named by its TensorCores: {chips} chips (not {size})",)
    decider = f"the topology {format_topology(shape)} decides" if shape else "the number of devices decides"
    return (f"{name.text} is named by TensorCores by convention ({size // cores} chips); {decider}: {chips} chips",)


def _assumed(name: HardwareName, chips: int) -> tuple[tuple[int, ...], tuple[str, ...]]:
    shape = default_topology(name.chip, chips)
    if shape is None:
        reason = f"no single slice of {name.chip.title} with {chips} chips is documented"
        pod = name.chip.torus.pod if name.chip.torus else 0
        named = f"{name.chip.name}-{pod * name.chip.cores}"
        split = f": {chips // pod}x{named}" if pod and chips > pod and chips % pod == 0 else ""
        raise ConfigError(reason, where=name.text, hint=f"give the topology, or several slices{split}")
    if len(cube_topologies(name.chip, chips)) > 1:
        return shape, (f"topology {format_topology(shape)} assumed, the most compact of {chips} chips",)
    return shape, ()
