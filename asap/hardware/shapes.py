"""Topologies as text, and the default shape of a slice."""

import math
import re
from collections.abc import Sequence

from asap.core.errors import ConfigError
from asap.core.text import plain
from asap.hardware.chip import Chip

CUBE = 4
_SHAPE = re.compile(r"\d{1,5}(?:x\d{1,5})*", re.ASCII)


def parse_topology(topology: str | Sequence[int] | None) -> tuple[int, ...] | None:
    """``"8x8x8"`` → ``(8, 8, 8)``; nothing → ``None``.

    Raises:
        ConfigError: it is not positive integers joined by x.
    """
    if not topology:
        return None
    text = (topology if isinstance(topology, str) else format_topology(topology)).strip().casefold()
    lengths = tuple(int(length) for length in text.split("x")) if _SHAPE.fullmatch(text) else (0,)
    if min(lengths) < 1:
        raise ConfigError("is not a topology", where=plain(text, 60), hint="write it like 16x16 or 8x8x8")
    return lengths


def format_topology(topology: Sequence[int]) -> str:
    """``(8, 8, 8)`` → ``"8x8x8"``."""
    return "x".join(map(str, topology))


def default_topology(chip: Chip, chips: int) -> tuple[int, ...] | None:
    """The documented shape of a slice of that many chips, else the most compact one of whole cubes, else ``None``.

    The rule gives the shapes that MaxText lists for each size (accelerator_to_spec_map.py).
    """
    if chip.torus is None or chips > chip.torus.pod:
        return None
    documented = (parse_topology(shape) for shape in chip.torus.shapes)
    same_size = [shape for shape in documented if shape and math.prod(shape) == chips]
    return min(same_size or cube_topologies(chip, chips), key=sum, default=None)


def cube_topologies(chip: Chip, chips: int) -> list[tuple[int, ...]]:
    """Every shape of that many chips that is made of whole cubes of 4x4x4, sides in ascending order."""
    cubes, rest = divmod(chips, CUBE**3)
    if chip.torus is None or not chip.torus.wrap_together or rest:
        return []
    sides = [side for side in range(1, cubes + 1) if cubes % side == 0]
    return [
        (CUBE * a, CUBE * b, CUBE * (cubes // (a * b)))
        for a in sides
        for b in sides
        if a <= b and cubes % (a * b) == 0 and b <= cubes // (a * b)
    ]
