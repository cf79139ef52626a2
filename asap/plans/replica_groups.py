"""The devices of a collective, and the mesh axes along which they lie.

Replica groups are printed in three forms: ``{{0,1},{2,3}}``, ``[2,2]<=[4]T(0)`` (an iota that is reshaped and
transposed) and ``mesh['a'=2,'b'=2] {'a'}``. Numbers count devices in the order of the mesh.
"""

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass

Groups = tuple[tuple[int, ...], ...]

MOST_DEVICES = 1 << 20

_LISTS = re.compile(r"replica_groups=\{((?:\{[\d,]*\},?)*)\}")
_IOTA = re.compile(r"replica_groups=\[([\d,]+)\]<=\[([\d,]+)\](?:T\(([\d,]+)\))?")
_MESH = re.compile(
    r"replica_groups=@?mesh[\w.]*\[([^\]]*)\]"
    r"(?:, ?device_ids=(?:\(\[([\d,]+)\](?:T\(([\d,]+)\))?\)|\[([\d,]+)\]))?\s*\{([^}]*)\}"
)
_AXIS = re.compile(r"'([^']+)'(?::\((\d+)\)(\d+))?")
_SIZE = re.compile(r"'([^']+)'=(\d+)")
_PAIRS = re.compile(r"source_target_pairs=\{((?:\{\d+,\d+\},?)*)\}")


def replica_groups(text: str, devices: int) -> Groups | None:
    """Groups of devices from the attributes of a collective; ``None`` if they are printed in an unknown form."""
    if found := _LISTS.search(text):
        groups = tuple(_numbers(group) for group in re.findall(r"\{([\d,]*)\}", found.group(1)))
        return groups or (tuple(range(devices)),)
    if found := _IOTA.search(text):
        shape = _numbers(found.group(1))
        return _chunks(_device_order(found.group(2), found.group(3)), shape[-1])
    if found := _MESH.search(text):
        sizes, dims, order, listed, chosen = found.groups()
        return _mesh_groups(sizes, _device_order(dims, order) if dims else _numbers(listed or ""), chosen)
    return None


def joined(text: str, devices: Sequence[int], device: int) -> tuple[int, ...]:
    """The devices that a collective joins with one of them; none where its text does not say.

    Args:
        text: of the instruction.
        devices: those of the job, in the order in which the program numbers them.
        device: one of them.
    """
    try:
        groups = [[devices[each] for each in group] for group in replica_groups(text, len(devices)) or ()]
    except (ValueError, IndexError):
        return ()
    return next((tuple(group) for group in groups if device in group), ())


def source_target_pairs(text: str) -> tuple[tuple[int, int], ...] | None:
    """Sender and receiver of each message of a collective-permute."""
    found = _PAIRS.search(text)
    if found is None:
        return None
    return tuple((int(a), int(b)) for a, b in re.findall(r"\{(\d+),(\d+)\}", found.group(1)))


@dataclass(frozen=True)
class NamedMesh:
    """Names and lengths of the mesh axes; device numbers count row by row."""

    names: tuple[str, ...]
    lengths: tuple[int, ...]

    def axes(self, members: Sequence[int]) -> tuple[str, ...]:
        """Axes along which the members differ."""
        columns = zip(*(self._coordinates(member) for member in members), strict=True)
        return tuple(name for name, column in zip(self.names, columns, strict=True) if len(set(column)) > 1)

    def groups(self, *axes: str) -> Groups:
        """The groups of devices along some axes, of which the last counts fastest."""
        along = [self.names.index(axis) for axis in axes]
        order = [i for i in range(len(self.names)) if i not in along] + along
        numbers = _transposed(range(math.prod(self.lengths)), self.lengths, tuple(order))
        return _chunks(numbers, math.prod(self.lengths[i] for i in along))

    def covers(self, members: Sequence[int], axes: Sequence[str]) -> bool:
        """Whether the members are all devices along these axes."""
        return len(members) == math.prod(self.lengths[self.names.index(axis)] for axis in axes)

    def _coordinates(self, device: int) -> tuple[int, ...]:
        coordinates = []
        for length in reversed(self.lengths):
            device, index = divmod(device, length)
            coordinates.append(index)
        return tuple(reversed(coordinates))


def _device_order(dims: str, order: str | None) -> tuple[int, ...]:
    """``[2,4]T(1,0)``: an iota of these dimensions, transposed."""
    lengths = _numbers(dims)
    axes = _numbers(order) if order else tuple(range(len(lengths)))
    return tuple(_transposed(range(math.prod(lengths)), lengths, axes))


def _mesh_groups(sizes: str, ids: tuple[int, ...], chosen: str) -> Groups:
    lengths = {name: int(size) for name, size in _SIZE.findall(sizes)}
    parts: list[tuple[int, bool]] = []
    wanted = {name: (pre, size) for name, pre, size in _AXIS.findall(chosen)}
    for name, length in lengths.items():
        pre, size = wanted.get(name, ("", ""))
        before, inner = (int(pre), int(size)) if size else (1, length)
        parts += [(before, False), (inner, name in wanted), (length // before // inner, False)]
    dims = tuple(length for length, _ in parts)
    order = [i for i, (_, joined) in enumerate(parts) if not joined] + [
        i for i, (_, joined) in enumerate(parts) if joined
    ]
    numbers = ids or range(math.prod(dims))
    members = math.prod(length for length, joined in parts if joined)
    return _chunks(_transposed(numbers, dims, tuple(order)), members)


def _transposed(numbers: Sequence[int], dims: tuple[int, ...], order: tuple[int, ...]) -> list[int]:
    if math.prod(dims) > MOST_DEVICES:
        raise ValueError("more devices than a job has")
    strides = [math.prod(dims[i + 1 :]) for i in range(len(dims))]
    found = [0]
    for axis in order:
        found = [start + step * strides[axis] for start in found for step in range(dims[axis])]
    return [numbers[index] for index in found]


def _chunks(numbers: Sequence[int], size: int) -> Groups:
    return tuple(tuple(numbers[start : start + size]) for start in range(0, len(numbers), size))


def _numbers(text: str) -> tuple[int, ...]:
    return tuple(int(number) for number in text.split(",") if number)
